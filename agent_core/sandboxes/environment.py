"""The environment that programs expect in any tier: variables, and files of /etc."""

from collections.abc import Mapping

ETC = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("debian_version", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"),
    *("magic", "mime.types", "os-release", "pki/ca-trust", "pki/tls/certs", "protocols"),
    *("python3", "python3.11", "python3.12", "python3.13", "services", "ssl/certs"),
    *("ssl/openssl.cnf", "timezone", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk"),
)
"""Files of the machine's /etc that programs need and nobody hides: never a whole folder of
settings."""
NAME = "sandbox"
"""The host, and the person that commands are."""


def make_env(home: str, path: str) -> dict[str, str]:
    """Return the variables of a command whose HOME is `home`; `path`: the folders of its
    programs."""
    return {
        "PATH": f"{home}/.local/bin:{path}",
        "HOME": home,
        "USER": NAME,
        "LOGNAME": NAME,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        # there is nobody to answer, and no pager
        "DEBIAN_FRONTEND": "noninteractive",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "PAGER": "cat",
        # partial output must be visible after a timeout
        "PYTHONUNBUFFERED": "1",
        # packages are installed in HOME: the system is read-only
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NPM_CONFIG_PREFIX": f"{home}/.local",
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    }


def make_etc(uid: int, gid: int, home: str) -> Mapping[str, str]:
    """Files of /etc that are written for the sandbox, by name."""
    return {
        "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{NAME}:x:{uid}:{gid}::{home}:/bin/bash\n",
        "group": f"root:x:0:\n{NAME}:x:{gid}:\n",
        "hosts": f"127.0.0.1 localhost {NAME}\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "resolv.conf": "",
    }
