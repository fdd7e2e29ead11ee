"""Further long options of programs with which they still only read."""

_SUM = "--binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn"
_SUMS = ("b2sum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum")

LONG_OPTIONS = {
    **dict.fromkeys(_SUMS, _SUM),
    "grep": (
        "--colour --colour= --binary-files= --devices= --unix-byte-offsets "
        "--quiet --silent --no-messages --byte-offset --initial-tab --line-buffered --text "
        "--null --files-without-match --line-regexp --perl-regexp --basic-regexp "
        "--no-ignore-case --max-count= --include= --exclude= --exclude-dir= --after-context= "
        "--before-context= --context= --label="
    ),
    "ls": (
        "--block-size= --classify --classify= --dereference --directory --escape --file-type "
        "--format= --group --hide= --hyperlink --hyperlink= --indicator-style= --kibibytes "
        "--literal --no-group --numeric-uid-gid --quote-name --quoting-style= "
        "--show-control-chars --si --tabsize= --time= --width= --zero --author --context "
        "--ignore-backups --hide-control-chars --dired"
    ),
    "cat": (
        "--number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs "
        "--squeeze-blank"
    ),
    "head": "--lines= --bytes= --quiet --silent --verbose --zero-terminated",
    "tail": "--lines= --bytes= --quiet --silent --verbose --zero-terminated",
    "wc": "--lines --words --bytes --chars --max-line-length --total=",
    "sort": (
        "--key= --field-separator= --ignore-leading-blanks --dictionary-order --ignore-case "
        "--general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort "
        "--random-sort --version-sort --sort= --check --check= --merge --stable "
        "--zero-terminated --parallel= --buffer-size= --batch-size= --debug"
    ),
    "uniq": (
        "--repeated --unique --ignore-case --skip-fields= --skip-chars= --check-chars= "
        "--zero-terminated --all-repeated --all-repeated= --group --group="
    ),
    "cut": (
        "--bytes= --characters= --delimiter= --fields= --only-delimited --output-delimiter= "
        "--zero-terminated"
    ),
    "tr": "--complement --delete --squeeze-repeats --truncate-set1",
    "du": (
        "--all --apparent-size --block-size= --bytes --count-links --dereference --exclude= "
        "--human-readable --inodes --max-depth= --null --one-file-system --separate-dirs --si "
        "--summarize --threshold= --time --time= --time-style= --total"
    ),
    "df": (
        "--all --block-size= --exclude-type= --human-readable --inodes --local --output "
        "--output= --portability --print-type --si --total --type="
    ),
    "stat": "--cached= --dereference --file-system --format= --printf= --terse",
    "file": (
        "--mime --mime-encoding --extension --keep-going --dereference --no-dereference --raw "
        "--separator= --no-pad --print0"
    ),
    "nl": (
        "--body-numbering= --number-format= --number-separator= --number-width= "
        "--starting-line-number="
    ),
    "paste": "--delimiters= --serial --zero-terminated",
    "comm": "--check-order --nocheck-order --output-delimiter= --total --zero-terminated",
    "join": "--check-order --nocheck-order --header --ignore-case --zero-terminated",
    "fold": "--bytes --spaces --width=",
    "fmt": "--width= --split-only --uniform-spacing --crown-margin --tagged-paragraph",
    "column": "--table --separator= --output-separator= --table-columns= --json --table-right=",
    "base64": "--decode --ignore-garbage --wrap=",
    "od": (
        "--format= --address-radix= --skip-bytes= --read-bytes= --width= --width "
        "--output-duplicates"
    ),
    "seq": "--equal-width --separator= --format=",
    "shuf": "--input-range= --head-count= --echo --repeat --zero-terminated",
    "tree": (
        "--du --si --filelimit= --filesfirst --sort --sort= --matchdirs --ignore-case "
        "--inodes --device --charset= --timefmt= --metafirst --dirsfirst"
    ),
    "diff": (
        "--context --context= --normal --ed --rcs --expand-tabs --initial-tab "
        "--speed-large-files --ignore-tab-expansion --ignore-trailing-space --text "
        "--unidirectional-new-file --new-file --exclude= --left-column --show-c-function "
        "--label= --no-dereference --tabsize= --ignore-matching-lines= --changed-group-format= "
        "--unchanged-group-format= --old-group-format= --new-group-format= --line-format= "
        "--old-line-format= --new-line-format= --unchanged-line-format= --horizon-lines= "
        "--suppress-blank-empty --show-function-line="
    ),
    "rg": (
        "--after-context= --before-context= --no-messages --passthru --invert-match "
        "--line-regexp --crlf --multiline-dotall --unrestricted --text --no-config --null "
        "--byte-offset --case-sensitive --max-filesize= --sortr= --threads= --sort-files "
        "--with-filename --quiet"
    ),
    "jq": (
        "--ascii-output --exit-status --join-output --raw-input --color-output --monochrome-output"
    ),
    "date": "--universal --rfc-email --resolution",
    "realpath": (
        "--canonicalize-existing --canonicalize-missing --no-symlinks --strip --quiet --zero "
        "--relative-to= --relative-base="
    ),
    "readlink": (
        "--canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet"
    ),
    "sed": "--silent --separate --null-data --unbuffered --line-length= --posix",
}
"""Long options by program. Those ending in `=` take a value; also without one where both forms are
listed."""
