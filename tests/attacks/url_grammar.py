"""URLs that lead inside, in every notation, and URLs of the web. Made by a grammar."""

import ipaddress

from hypothesis import strategies as st

CLOSED = (
    "http://localhost", "http://LocalHost:9200/_cat", "http://localhost./", "http://foo.localhost/",
    "http://ip6-localhost/", "http://broadcasthost/", "http://router/", "http://intranet/wiki",
    "http://metadata/", "http://metadata.google.internal/computeMetadata/v1/", "http://a.internal/",
    "http://instance-data/latest/", "http://printer.local/", "http://nas.lan/", "http://x.home.arpa/",
    "http://ad.corp/", "http://db.svc/", "http://api.default.svc.cluster.local/", "http://vault.service.consul/",
    "http://127.0.0.1.nip.io/", "http://a-10-0-0-1.sslip.io/", "http://localtest.me:3000/", "http://x.lvh.me/",
    "http://127.1/", "http://127.0.1/", "http://0/", "http://0.0.0.0/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.1/", "http://017700000001/", "http://0177.0.0.01/", "http://127.0.0.1./",
    "http://00127.0.0.1/", "http://127.0.0.0x1/", "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:0:127.0.0.1]/", "http://[::127.0.0.1]/",
    "http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b:1::1]/", "http://[2002:a00:1::]/", "http://[2001:0:0:0:0:0:f5ff:fffe]/",
    "http://[fe80::1]/", "http://[fe80::1%25lo]/", "http://[fc00::1]/", "http://[fd12:3456::1]/", "http://[ff02::1]/",
    "http://[fec0::1]/", "http://[100::1]/", "http://[2001:db8::1]/", "http://[2600:1f00::5efe:10.0.0.1]/",
    "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.255.255/",
    "http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/", "http://100.64.0.1/", "http://100.127.255.255/",
    "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/", "http://198.19.255.255/",
    "http://203.0.113.9/", "http://224.0.0.251/", "http://239.255.255.250/", "http://240.0.0.1/", "http://255.255.255.255/",
    "https://me@example.com/", "https://me:pw@example.com/", "https://@example.com/", "https://example.com@10.0.0.1/",
    "https://example.com\\@10.0.0.1/", "https://10.0.0.1\\.example.com/", "https://exam%70le.com/", "https://%6c%6fcalhost/",
    "http:///example.com/", "http:example.com", "http:/example.com", "//example.com/", "example.com", "/etc/passwd",
    "file:///etc/passwd", "FILE:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "ws://example.com/",
    "javascript:alert(1)", "data:text/html,x", "blob:https://example.com/x", "view-source:https://example.com/",
    "about:blank", "chrome://settings", "jar:http://example.com!/", "ssh://example.com", "ldap://example.com/",
    "tel:1", "mailto:a@example.com", "unix:///var/run/docker.sock", "netdoc:///etc/passwd", "",
    " https://example.com/", "https://example.com/ x", "https://exa\tmple.com/", "https://example.com/\r\nX: y",
    "https://example.com\x00.evil.example/", "https://exam\u00adple.com/", "https://\u2460\u2461\u2466.0.0.1/",
    "https://\uff11\uff12\uff17.0.0.1/", "https://127\u30020\u30020\u30021/", "https://ex\u200bample.com/",
    "https://-x.example/", "https://x..example/", "https://[example.com]/", "https://[::1/", "https://example.com:99999/",
    "https://example.com:port/", "https://" + "a" * 300 + ".example/", "https://example.com/" + "a" * 5_000,
)  # fmt: skip
OPEN = (
    "https://example.com", "https://example.com/", "http://example.com:8080/", "https://www.example.org/a/b?c=d&e=f#g",
    "HTTPS://EXAMPLE.COM/", "https://a.b.c.example.co.uk/", "https://xn--mnchen-3ya.de/", "https://m\u00fcnchen.de/",
    "https://\u65e5\u672c.jp/", "https://93.184.216.34/", "https://8.8.8.8/x", "https://1.1.1.1:8443/", "http://172.32.0.1/",
    "http://172.15.0.1/", "http://11.0.0.1/", "http://192.169.0.1/", "http://100.128.0.1/", "http://169.253.1.1/",
    "https://[2606:4700:4700::1111]/", "https://[2a00:1450:4001::1]/x", "https://example.com./", "https://a_b.example.com/",
    "https://example.com/%20a", "https://example.com/a(b)", "https://example.com/?u=http://localhost/",
    "https://example.com/?q=127.0.0.1", "https://example.com/#localhost", "https://example.com/@me",
    "https://localhost.example.com/", "https://local.example/", "https://internal.example.com/", "https://lan.example/",
    "https://corp.example.com/", "https://metadata.example.org/", "https://127.example.com/", "https://10.example/",
    "https://1e100.net/", "https://0x.org/", "https://3m.com/", "https://123.example.com/", "https://a-b--c.example/",
    "https://example.museum/", "https://example.xn--p1ai/", "https://example.com:443/", "http://example.com:80/",
    "https://example.com:2222/", "https://api.example.com/v1/items?limit=5", "https://en.wikipedia.example/wiki/A_(b)",
    "https://example.com/a,b;c=d", "https://example.com/a+b", "https://example.com/~me", "https://example.com/a:b",
    "https://example.com/a%2Fb", "https://example.com/?", "https://example.com/a?b=c%26d", "https://example.com/\u00e4",
    "https://example.com/\u65e5\u672c", "https://example.com/'x'", "https://example.com/$x", "https://example.com/!x",
    "https://example.com/*", "https://example.com/a=b", "https://nip.example/", "https://localho.example/",
)  # fmt: skip
_INSIDE_NETS = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
)  # fmt: skip


@st.composite
def _inside_addresses(draw: st.DrawFn) -> ipaddress.IPv4Address:
    net = ipaddress.ip_network(draw(st.sampled_from(_INSIDE_NETS)))
    assert isinstance(net, ipaddress.IPv4Network)
    return net[draw(st.integers(0, net.num_addresses - 1))]


@st.composite
def _spell(draw: st.DrawFn, address: ipaddress.IPv4Address) -> str:
    """The address in a notation that some reader takes."""
    a, b, c, d = address.packed
    whole = int(address)
    bases = [draw(st.sampled_from(("{}", "{:#x}", "0{:o}", "{:03d}"))) for _ in range(4)]
    forms = (
        str(address), f"{address}.", str(whole), f"{whole:#x}", f"0{whole:o}", f"{a}.{whole & 0xFFFFFF}",
        f"{a}.{b}.{whole & 0xFFFF}", ".".join(map(str.format, bases, (a, b, c, d))),
        f"[::ffff:{address}]", f"[::ffff:{whole >> 16:x}:{whole & 0xFFFF:x}]", f"[::{address}]",
        f"[64:ff9b::{address}]", f"[2002:{whole >> 16:x}:{whole & 0xFFFF:x}::1]",
        "".join(chr(0xFF10 + int(one)) if one.isdigit() else one for one in str(address)),
    )  # fmt: skip
    return draw(st.sampled_from(forms))


@st.composite
def closed_urls(draw: st.DrawFn) -> str:
    """A URL of an address inside."""
    host = draw(_spell(draw(_inside_addresses())))
    scheme = draw(st.sampled_from(("http", "https", "HTTP")))
    port = draw(st.sampled_from(("", ":80", ":6379", ":65535")))
    rest = draw(st.sampled_from(("", "/", "/a?b=c", "/#x", "?x", "#@example.com")))
    user = draw(st.sampled_from(("", "", "me@", "example.com@", "a:b@")))
    return f"{scheme}://{user}{host}{port}{rest}"


@st.composite
def open_urls(draw: st.DrawFn) -> str:
    """A URL of a public name or address."""
    labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
    name = ".".join(draw(st.lists(labels, min_size=1, max_size=3)))
    end = draw(st.sampled_from(("com", "org", "net", "de", "io", "dev", "co.uk", "example")))
    path = draw(st.text("abcXYZ019-._~/%20?&=+,:;@!$()'*", max_size=30)).replace("%", "")
    port = draw(st.sampled_from(("", ":443", ":8080")))
    return f"https://{name}.{end}{port}/{path}"
