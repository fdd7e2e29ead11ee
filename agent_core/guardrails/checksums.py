"""Check digits of cards, accounts and people's numbers. Each takes digits and capitals alone."""

from collections.abc import Sequence

IBAN_LENGTHS = {
    "AD": 24,
    "AE": 23,
    "AL": 28,
    "AT": 20,
    "AZ": 28,
    "BA": 20,
    "BE": 16,
    "BG": 22,
    "BH": 22,
    "BR": 29,
    "BY": 28,
    "CH": 21,
    "CR": 22,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DK": 18,
    "DO": 28,
    "EE": 20,
    "EG": 29,
    "ES": 24,
    "FI": 18,
    "FO": 18,
    "FR": 27,
    "GB": 22,
    "GE": 22,
    "GI": 23,
    "GL": 18,
    "GR": 27,
    "GT": 28,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IL": 23,
    "IS": 26,
    "IT": 27,
    "JO": 30,
    "KW": 30,
    "KZ": 20,
    "LB": 28,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "MC": 27,
    "MD": 24,
    "ME": 22,
    "MK": 19,
    "MR": 27,
    "MT": 31,
    "MU": 30,
    "NL": 18,
    "NO": 15,
    "PK": 24,
    "PL": 28,
    "PS": 29,
    "PT": 25,
    "QA": 29,
    "RO": 24,
    "RS": 22,
    "SA": 24,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "SM": 27,
    "TN": 24,
    "TR": 26,
    "UA": 29,
    "VA": 22,
    "VG": 24,
    "XK": 20,
}
_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)
_MIN_REPEATS = 2
_MAX_REPEATS = 3


def has_luhn(digits: str) -> bool:
    """Payment cards, and some people's numbers."""
    doubled = (sum(divmod(2 * int(one), 10)) for one in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


_MAESTRO = frozenset({5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763})


def is_card(digits: str) -> bool:
    """A number that a card may have: its maker's first digits, their length, Luhn."""
    first, two, four, size = digits[0], int(digits[:2]), int(digits[:4]), len(digits)
    known = (
        (first == "4" and size in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and size == 16)
        or (two in (34, 37) and size == 15)
        or ((two in (36, 38, 39) or 300 <= four // 10 <= 305) and size == 14)
        or ((four == 6011 or two in (62, 64, 65)) and 16 <= size <= 19)
        or (3528 <= four <= 3589 and 16 <= size <= 19)
        or (four in _MAESTRO and 16 <= size <= 19)
    )
    return known and has_luhn(digits)


def is_iban(text: str) -> bool:
    """An account's number: its country's length, and mod 97."""
    if len(text) != IBAN_LENGTHS.get(text[:2], -1):
        return False
    return int("".join(str(int(one, 36)) for one in text[4:] + text[:4])) % 97 == 1


def is_tax_id(digits: str) -> bool:
    """Check a German tax number: ISO 7064 mod 11,10, and the repetitions of its digits."""
    if digits[0] == "0" or len(set(digits[:10])) not in (8, 9):
        return False
    most = max(map(digits[:10].count, digits[:10]))
    if not _MIN_REPEATS <= most <= _MAX_REPEATS:
        return False
    product = 10
    for one in digits[:10]:
        product = ((int(one) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[10])


def is_dni(text: str) -> bool:
    """The Spanish number of citizens, or of foreigners."""
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdecimal() and _DNI[int(number) % 23] == text[-1]


def is_nir(text: str) -> bool:
    """The French number of insured people: mod 97, Corsica's letters as digits."""
    number = text[:13].replace("2A", "19").replace("2B", "18")
    return number.isdecimal() and 97 - int(number) % 97 == int(text[13:])


def is_fiscal_code(text: str) -> bool:
    """The Italian tax code."""
    odd = sum(_ODD[_count(one)] for one in text[:15:2])
    even = sum(_count(one) for one in text[1:15:2])
    return chr(65 + (odd + even) % 26) == text[15]


def _count(one: str) -> int:
    return int(one) if one.isdecimal() else ord(one) - 65


def is_pesel(digits: str) -> bool:
    """The Polish number of people: weights, and a day of birth that there is."""
    month, day = int(digits[2:4]) % 20, int(digits[4:6])
    dated = 1 <= month <= 12 and 1 <= day <= 31
    return dated and (10 - _weigh(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10 == int(
        digits[10]
    )


def is_cpf(digits: str) -> bool:
    """The Brazilian number of taxpayers."""
    if len(set(digits)) == 1:
        return False
    first = _weigh(digits, range(10, 1, -1)) * 10 % 11 % 10
    second = _weigh(digits, range(11, 1, -1)) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}"


def is_ahv(digits: str) -> bool:
    """The Swiss number of insured people, which is an EAN-13."""
    return (10 - _weigh(digits, (1, 3) * 6) % 10) % 10 == int(digits[12])


def is_bsn(digits: str) -> bool:
    """The Dutch number of citizens."""
    return _weigh(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and int(digits) > 0


def is_nhs(digits: str) -> bool:
    """The British number of patients."""
    check = 11 - _weigh(digits, range(10, 1, -1)) % 11
    return check % 11 == int(digits[9])


def is_ssn(digits: str) -> bool:
    """Check that an American number may have been issued; it has no check digit."""
    return (
        digits[:3] not in ("000", "666")
        and digits[0] != "9"
        and digits[3:5] != "00"
        and (digits[5:] != "0000")
    )


def _weigh(digits: str, weights: Sequence[int]) -> int:
    return sum(int(one) * weight for one, weight in zip(digits, weights, strict=False))
