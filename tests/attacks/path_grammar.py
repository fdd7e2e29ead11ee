"""Paths that leave a workspace or name a secret, and paths that do neither."""

import re

from hypothesis import strategies as st

_CREDENTIAL = re.compile(
    r"token|secret|credential|passw|netrc|kubeconfig|vault|login data|cookies|key|id_(rsa|dsa|ec|ed)"
)
"""Words of names for secrets: a path with one may be refused rightly."""
OUTSIDE = (
    "/etc/passwd", "/", "//", "//etc/passwd", "/./etc", "/workspace/../etc/passwd", "/workspace/a/../../b",
    "/workspaces/a", "/Workspace/a", "/workspace2", "..", "../", "../x", "./../x", "a/../..", "a/../../b",
    "a/b/../../../c", "././../x", "..//x", ".. /x", "../.env", "....//x/../..", "a/.. /b", "..\\x", "a\\..\\..\\x",
    "\\\\server\\share", "C:\\x", "c:/x", "C:", "Z:\\", "\\etc", "%2e%2e/x", "..%2fx", "%2e%2e%2fx", "..%5cx",
    "%252e%252e%252fx", "..%252fx", "%25252e%25252e/x", "..%c0%afx", "%c0%ae%c0%ae/x", "%2fetc/passwd",
    "\uff0e\uff0e/x", "..\uff0fx", "\u2024\u2024/x", "~", "~/x", "~root/x", "~/../x", "%7e/x", "$HOME/x", "${HOME}/x",
    "$PWD/x", "%USERPROFILE%/x", "file:///etc/passwd", "file:/etc/passwd", "http://example.com/", "ftp://x/y",
    "/proc/self/environ", "/proc/1/root/x", "/dev/zero", "/dev/tcp/a/1", "/sys/x", "/root/x", "/tmp/x", "/home/user/x",
    "/var/run/docker.sock", "..;/x", "..././../x", ".../x/../../y", "a/./../../b", "x" * 300, "a/" * 600,
    "a\x00b", "a%00b", "a\nb", "a\rb", "a\tb", "a\x1bb", "a\u202eb", "a\u200bb", "a\u2066b", "\ufeffa", "a\ud800b",
)  # fmt: skip
SECRET = (
    ".env", "./.env", "a/.env", ".ENV", ".Env", ".env.", ".env ", ".env. .", ".env.local", ".env.production",
    "/workspace/.env", ".\uff45nv", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".htpasswd",
    ".git-credentials", ".envrc", ".s3cfg", ".boto", ".dockercfg", ".terraformrc", ".vault-token", ".credentials",
    ".ssh/config", "a/.ssh/known_hosts", ".aws/credentials", ".aws/config", ".gnupg/x", ".kube/config", ".docker/config.json",
    ".azure/x", ".gcloud/x", "id_rsa", "keys/id_dsa", "id_ecdsa", "id_ed25519", "id_ed25519_sk", "server.pem", "a/b.PEM",
    "x.p12", "x.pfx", "x.kdbx", "tls.key", "x.jks", "x.keystore", "x.ppk", "kubeconfig", "credentials.json",
    "secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "config/secrets.yml", "service-account.json",
    "service_account_prod.json", "client_secret_123.json", "terraform.tfstate", "terraform.tfstate.backup", ".vault_pass",
)  # fmt: skip
OWN = (
    ".turnkeeper",
    ".turnkeeper/x",
    "./.turnkeeper/a",
    "/workspace/.turnkeeper/b",
    ".Turnkeeper/x",
    ".turnkeeper//x",
)
SETTINGS = (
    ".git/hooks/pre-commit", ".git/config", "a/.git/hooks/post-checkout", ".GIT/config", "./.git/info/attributes",
    "/workspace/.git/config", "sub/./.git//HEAD", ".gitattributes", ".gitmodules", ".gitconfig", ".git ./config",
    ".husky/pre-commit", ".hg/hgrc", ".svn/x", ".bashrc", "home/.bashrc", ".bash_profile", ".bash_aliases", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".kshrc", ".cshrc", ".tcshrc", ".inputrc", ".login", ".xprofile", ".tmux.conf",
    ".config/fish/config.fish", ".vimrc", ".exrc", ".nanorc", ".emacs", ".emacs.d/init.el", ".dir-locals.el", ".gdbinit",
    ".vscode/settings.json", ".vscode/tasks.json", ".idea/workspace.xml", "x.code-workspace", ".zed/tasks.json",
    ".claude/settings.json", ".claude/commands/x.md", ".cursor/mcp.json", ".cursorrules", ".windsurfrules", ".clinerules",
    ".mcp.json", "mcp.json", ".codex/config.toml", ".gemini/settings.json", ".aider.conf.yml", ".continue/config.json",
    ".Rprofile", ".psqlrc", ".irbrc", ".screenrc", ".\uff47it/config", ".vim/plugin/x.vim", "-x", "--help", "docs/-f.env", "a -f.env b.md", "--files0-from=.env",
    "a\"/-rf", "x '--pre=sh", "notes /etc/passwd.md", "x \\-C",
)  # fmt: skip
"""Files of the workspace that programs obey, or whose names they do: a person is asked first."""
INSIDE = (
    "a", "a.txt", "./a", "a/b/c", "a/..", "a//b", "a/./b", ".", "./", "/workspace", "/workspace/", "/workspace/a", "/workspace//a",
    "src/main.py", "README.md", "Makefile", "docs/read me.md", "a b/c d.txt", "\u00e4/\u00f6.md", "\u65e5\u672c.txt", "\U0001f600.png",
    ".gitignore", ".github/workflows/ci.yml", ".eslintrc.json", ".env.example", ".env.sample", ".env.template", ".env.dist",
    ".config/app.toml", "a..b", "..a", "a..", "x...y", "v1.2..3", "img@2x.png", "50%.txt", "100%/a",
    "a%20b.txt", "%41.txt", "a+b.txt", "a=b", "a&b", "a,b;c", "a:b.txt", "10:30 notes.txt", "[id].tsx", "(group)/page.tsx",
    "routes/$id.tsx", "$layout.tsx", "#notes#", "a#b", "!x", "it's.txt", 'a"b.txt', "a?b", "a*b", "key.py", "keys.ts", "tokens.json",
    "token.py", "secret.py", "secrets.py", "my_secrets.md", "credentials.py", "environment.yml", "env", "env.py", "pem.md",
    "monkey.txt", "keynote.md", "id_rsa.pub", "ssh/config.py", "aws/main.tf", "docker/Dockerfile", "kube/deploy.yaml",
    "password_test.py", "dotenv.js", "turnkeeper/x", "x.turnkeeper", "home/user/x", "etc/passwd", "proc/self/environ", "tmp/x",
    "C/x", "c.d/x", "a\\b.txt", "caf\\xE9.txt", "data/2024-01-01T10:00:00.csv", "Q1 - plan.md", "-", "a~", "x~1", "node_modules/a/b.js",
)  # fmt: skip


@st.composite
def leaving_paths(draw: st.DrawFn) -> str:
    """A path that climbs out, in some spelling, to something."""
    inner = draw(st.lists(st.sampled_from(("a", "b c", "src", ".", "")), max_size=4))
    ups = len([one for one in inner if one not in (".", "")]) + draw(st.integers(1, 4))
    up = draw(st.sampled_from(("..", ".. ", "%2e%2e", "%2E.", "\uff0e\uff0e", "%252e%252e")))
    slash = draw(st.sampled_from(("/", "//", "/./", "\\", "%2f", "%5C", "%252f", "\uff0f")))
    target = draw(st.sampled_from(("etc/passwd", "x", "", ".ssh/id_rsa", "a b")))
    return (
        slash.join((*inner, *([up] * ups), target))
        if inner
        else slash.join((*([up] * ups), target))
    )


@st.composite
def inner_paths(draw: st.DrawFn) -> str:
    """A path of the workspace, of plain names."""
    letters = "abcdefghijklmnopqrstuvwxyzABC0123456789-_ \u00e4\u00df\u65e5"
    parts = draw(st.lists(st.text(letters, min_size=1, max_size=20), min_size=1, max_size=6))
    end = draw(st.sampled_from(("", ".txt", ".py", ".md", ".csv", ".tar.gz", ".json5")))
    before = draw(st.sampled_from(("", "./", "/workspace/")))
    # Hypothesis tries words of our own source too, so a part may be the name of a secret file.
    # A name of blanks alone, or one with an option in it, is meant for who parts it there.
    plain = [
        "x" if _CREDENTIAL.search(part.casefold()) or not part.strip(" ") else part
        for part in parts
    ]
    return before + "/".join(plain) + end
