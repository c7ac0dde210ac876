"""The configuration: file, environment, secrets in files, and all faults at once."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import trustme

from gateway.__main__ import read_config
from gateway.server.config import HIDDEN, SECTIONS, Config, ConfigFaults, load

ROOT = Path(__file__).parents[4]
FILE = ROOT / "config.toml"


def faults_of(path: Path | None, env: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigFaults) as caught:
        load(path, env)
    return caught.value.faults


def test_the_file_in_the_repository_says_the_defaults() -> None:
    assert load(FILE, {}) == Config() == load(None, {})


def test_every_key_stands_in_the_file_under_a_comment() -> None:
    document, lines = tomllib.loads(FILE.read_text()), FILE.read_text().splitlines()
    assert list(document) == list(SECTIONS)
    for section, kind in SECTIONS.items():
        assert list(document[section]) == list(get_type_hints(kind)), section
        for key in document[section]:
            at = next(i for i, line in enumerate(lines) if line.startswith(f"{key} ="))
            assert lines[at - 1].startswith("# "), f"{section}.{key} has no comment"


def test_which_place_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment, then the local file, then the documented one; a named one stands alone."""
    monkeypatch.chdir(tmp_path)
    assert read_config(None) == Config()
    local = tmp_path / "config.local.toml"
    local.write_text("[server]\nport = 81\n")
    assert read_config(None).server.port == 81
    (tmp_path / "config.toml").write_text("[server]\nport = 80\nhost = 'a'\n")
    both = read_config(None).server
    assert (both.port, both.host) == (81, "a")
    assert read_config("config.toml").server.port == 80
    monkeypatch.setenv("CARTEIRO_SERVER__PORT", "82")
    assert read_config(None).server.port == read_config("config.toml").server.port == 82
    monkeypatch.setenv("CARTEIRO_CONFIG", "config.toml")
    monkeypatch.delenv("CARTEIRO_SERVER__PORT")
    assert read_config(None).server.port == 80
    local.write_text("[server]\nprot = 1\n")
    with pytest.raises(ConfigFaults, match=r"from config\.local\.toml"):
        load(FILE, {}, local)
    # Variables that are not ours are left alone, and git ignores the local file.
    kubernetes = {"CARTEIRO_PORT": "tcp://10.0.0.1:80", "CARTEIRO_SERVICE_HOST": "10.0.0.1"}
    assert load(None, kubernetes) == Config()
    assert "/config.local.toml" in (ROOT / ".gitignore").read_text().splitlines()


def test_names_that_programs_outside_rely_on() -> None:
    config = load(
        None,
        {
            "CARTEIRO_SERVER__HOST": "0.0.0.0",
            "CARTEIRO_SERVER__PORT": "9",
            "CARTEIRO_DATABASE__URL": "postgresql://u@h:1/n",
            "CARTEIRO_EGRESS__ALLOW": "127.0.0.1/32:8081, [::1/128]:8082,10.0.0.0/8",
            "CARTEIRO_EGRESS__ALLOW_HTTP": "true",
            "CARTEIRO_SECRETS__KEY_FILE": "/run/keys",
            "CARTEIRO_LIMITS__READ_PER_SECOND": "0",
            "CARTEIRO_LIMITS__WRITE_PER_SECOND": "1",
            "CARTEIRO_LIMITS__SIGN_IN_PER_MINUTE": "2",
            "CARTEIRO_LIMITS__STOREFRONT_PER_MINUTE": "3",
            "CARTEIRO_LIMITS__FORMS_PER_MINUTE": "4",
            "CARTEIRO_LIMITS__WEBHOOKS_PER_OWNER": "0",
            "CARTEIRO_DELIVERY__SLOTS": "7",
            "CARTEIRO_RETRY__SCHEDULE": "1, 2,0.5",
            "CARTEIRO_LOGGING__LEVEL": "warning",
            "CARTEIRO_METRICS__WEBHOOK_SERIES": "9",
        },
    )
    assert config.egress.allow == ("127.0.0.1/32:8081", "[::1/128]:8082", "10.0.0.0/8")
    assert config.egress.allow_http is True
    assert config.secrets.key_file == "/run/keys"
    assert config.retry.schedule == (1.0, 2.0, 0.5)
    limits = config.limits
    assert (limits.read_per_second, limits.write_per_second, limits.sign_in_per_minute) == (0, 1, 2)
    assert (limits.storefront_per_minute, limits.forms_per_minute) == (3, 4)
    assert (limits.webhooks_per_owner, config.delivery.slots) == (0, 7)
    assert (config.logging.level, config.metrics.webhook_series) == ("warning", 9)
    assert config.database.url == "postgresql://u@h:1/n"
    assert (config.server.host, config.server.port) == ("0.0.0.0", 9)


def test_origins_are_spelled_as_browsers_do_and_lists_may_be_empty() -> None:
    config = load(
        None,
        {
            "CARTEIRO_SERVER__PUBLIC_URL": "HTTPS://CRM.Example.com.:443/",
            "CARTEIRO_SERVER__CORS_ORIGINS": "https://App.example:443/,https://app.example,"
            "http://B.example.:8080",
            "CARTEIRO_METRICS__ALLOW": "", "CARTEIRO_RETRY__SCHEDULE": "",
        },
    )  # fmt: skip
    assert config.server.public_url == "https://crm.example.com"
    assert config.server.cors_origins == ("https://app.example", "http://b.example:8080")
    assert (config.metrics.allow, config.retry.schedule) == ((), ())


@pytest.mark.parametrize("text", ["*", "null", "app.example", "https://a.example/x", "https://a:0"])
def test_an_origin_that_is_none_is_refused(text: str) -> None:
    for key in ("CORS_ORIGINS", "PUBLIC_URL"):
        [fault] = faults_of(None, {f"CARTEIRO_SERVER__{key}": text})
        assert fault.startswith(f"server.{key.lower()}: ")
        assert repr(text) in fault


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        '[server]\nport = "80"\nprot = 1\npublic_url = "https://a.b/path"\n'
        '[sever]\nport = 1\n[limits]\nbody_bytes = true\n[auth]\nsignup = "maybe"\n'
        '[metrics]\nallow = ["10.0.0.1/8"]\n[service]\nname = "a b"\n'
    )
    faults = faults_of(
        file,
        {
            "CARTEIRO_SERVER__HOTS": "x",
            "CARTEIRO_EGRESS__ALLOW_HTTP": "perhaps",
            "CARTEIRO_RETRY__SCHEDULE": "1,x",
            "CARTEIRO_EGRESS__ALLOW": "127.0.0.1:99999",
            "CARTEIRO_DATABASE__URL": "mysql://x",
        },
    )
    for named in (
        "server.port", "server.prot", "server.public_url", "sever", "limits.body_bytes",
        "auth.signup", "metrics.allow", "service.name", "server.hots", "egress.allow_http",
        "retry.schedule", "egress.allow:", "database.url",
    ):  # fmt: skip
        assert any(fault.startswith(named) for fault in faults), (named, faults)
    assert len(faults) == 13


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[server]\nport = "80"', 'a whole number from 0 to 65535, not the text "80"'),
        ("[server]\nhost = 3", "text in quotes, not 3"),
        ("[limits]\nburst = true", "a whole number of 1 or more, not true"),
        ("[limits]\nburst = 0", "a whole number of 1 or more, not 0"),
        ("[limits]\nbody_seconds = nan", "a number above 0 and up to 86400, not nan"),
        ('[egress]\nallow_http = "yes"', 'true or false, not the text "yes"'),
        ('[egress]\nallow = "a"', 'a list of entries, each text in quotes, not the text "a"'),
        ('[auth]\nsignup = "maybe"', 'one of closed, open, not the text "maybe"'),
        ('[service]\nname = "a b"',
         '1 to 40 letters, digits, - and _, a letter first, not the text "a b"'),
        ('[retry]\nschedule = [1, "x"]',
         'a list of at most 50 entries, each a number from 0 to 2592000, not [1,"x"]'),
        ("[metrics]\ntoken = 123", "text in quotes"),
        ("[server]\nport = 2026-01-01", 'a whole number from 0 to 65535, not "2026-01-01"'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_what_it_must_be(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text + "\n")
    [fault] = faults_of(file, {})
    assert fault.partition(": must be ")[2] == f"{told} (from c.toml)"


@pytest.mark.parametrize("name", sorted(HIDDEN))
def test_a_secret_of_the_wrong_type_is_not_shown(tmp_path: Path, name: str) -> None:
    file = tmp_path / "c.toml"
    section, _, key = name.partition(".")
    for wrong in ('{ of = "c2VjcmV0" }', '[["b4ac4783 c2VjcmV0 2026-01-01T00:00:00Z"]]'):
        file.write_text(f"[{section}]\n{key} = {wrong}\n")
        [fault] = faults_of(file, {})
        assert fault.startswith(f"{name}: must be ")
        assert "c2VjcmV0" not in fault


def test_a_file_of_authorities_is_read_at_the_start(tmp_path: Path) -> None:
    file, inner = tmp_path / "c.toml", tmp_path / "inner.pem"
    file.write_text(f'[egress]\nca_file = "{inner}"\n')
    start = f"egress.ca_file: {inner}"
    assert faults_of(file, {}) == [
        f"{start} cannot be read: no such file or directory (from c.toml)"
    ]
    for content in (b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nMII\n"):
        inner.write_bytes(content)
        assert faults_of(file, {}) == [
            f"{start} has no certificate in PEM, or a damaged one (from c.toml)"
        ]
    trustme.CA().cert_pem.write_to_path(str(inner))
    assert load(file, {}).egress.ca_file == str(inner)


def test_a_wrong_variable_is_told_what_it_must_be() -> None:
    for variable, told in (
        ({"CARTEIRO_SERVER__PORT": "x"}, 'a whole number from 0 to 65535, not the text "x"'),
        ({"CARTEIRO_EGRESS__ALLOW_HTTP": "perhaps"}, 'true or false, not the text "perhaps"'),
    ):
        [fault] = faults_of(None, variable)
        assert fault.partition(": must be ")[2] == f"{told} (from {next(iter(variable))})"


def test_a_misspelt_name_is_told_what_may_be_meant(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    for text, told in (
        ("[server]\nprot = 1", "server.prot: unknown key (from c.toml); did you mean server.port?"),
        ("[sever]\nport = 1", "sever: unknown section (from c.toml); did you mean [server]?"),
        ("[server]\nallow_http = true",
         "server.allow_http: unknown key (from c.toml); did you mean egress.allow_http?"),
        ("allow_http = true",
         "allow_http: belongs below the line of a section (from c.toml); did you mean [egress]?"),
        ('[mail]\nhost = "a.example:587"\nfrom_address = "a@b.co"',
         "mail.host: 'a.example:587' must be a host only; the port is mail.port"),
    ):  # fmt: skip
        file.write_text(text + "\n")
        assert faults_of(file, {}) == [told]
    [fault] = faults_of(None, {"CARTEIRO_SEVER__PORT": "1"})
    assert fault.endswith("; did you mean [server]?")
    [fault] = faults_of(None, {"CARTEIRO_SERVER__ZZZ": "1"})
    assert "; keys of [server]: host, port, " in fault
    [fault] = faults_of(None, {"CARTEIRO_ZZZ__PORT": "1"})
    assert "; known sections: service, server, " in fault


@pytest.mark.parametrize("content", [b"[server", b"# caf\xe9", b"server = 3\n"])
def test_a_file_that_is_no_configuration(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(content)
    assert len(faults_of(file, {})) == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be read" in faults_of(tmp_path / "none.toml", {})[0]


def test_secrets_from_files(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("hush\n")
    assert load(None, {"CARTEIRO_METRICS__TOKEN_FILE": str(secret)}).metrics.token == "hush"
    # An image or a unit may have set the variable.
    both = {"CARTEIRO_METRICS__TOKEN_FILE": str(secret), "CARTEIRO_METRICS__TOKEN": "x"}
    assert load(None, both).metrics.token == "hush"
    missing = {"CARTEIRO_DATABASE__URL_FILE": str(tmp_path / "gone")}
    assert "cannot be read" in faults_of(None, missing)[0]
    assert "unknown key" in faults_of(None, {"CARTEIRO_SERVER__PORT_FILE": str(secret)})[0]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("", ""),
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("https://traces.example.com/", "https://traces.example.com/v1/traces"),
        ("https://traces.example.com/otlp/v1/traces", "https://traces.example.com/otlp/v1/traces"),
    ],
)
def test_the_trace_collector_gets_the_usual_path(text: str, stored: str) -> None:
    assert load(None, {"CARTEIRO_TRACING__ENDPOINT": text}).tracing.endpoint == stored


@pytest.mark.parametrize("text", ["127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "x"])
def test_a_trace_collector_that_is_no_url_is_refused(text: str) -> None:
    [fault] = faults_of(None, {"CARTEIRO_TRACING__ENDPOINT": text})
    assert fault.startswith("tracing.endpoint: must be a URL such as")


def test_headers_of_the_trace_collector_are_secret(tmp_path: Path) -> None:
    secret = tmp_path / "headers"
    secret.write_text("X-Team: carteiro, Authorization: Bearer t\n")
    config = load(None, {"CARTEIRO_TRACING__HEADERS_FILE": str(secret)})
    assert config.tracing.headers == ("X-Team: carteiro", "Authorization: Bearer t")
    for wrong in ("hunter2", "no name: hunter2", "X-Team:"):
        [fault] = faults_of(None, {"CARTEIRO_TRACING__HEADERS": wrong})
        assert 'each must be "Name: value"' in fault
        assert "hunter2" not in fault


def test_several_processes_need_postgresql() -> None:
    env = {"CARTEIRO_SERVER__PROCESSES": "2"}
    with pytest.raises(ConfigFaults) as refused:
        load(None, env)
    assert refused.value.faults == [
        "server.processes: must be 1 on SQLite, which one process serves; set it to 1, or set "
        "database.url to a PostgreSQL database"
    ]
    config = load(None, env | {"CARTEIRO_DATABASE__URL": "postgresql://u@h/n"})
    assert config.server.processes == 2


def test_an_hour_has_at_least_the_orders_of_a_minute() -> None:
    with pytest.raises(ConfigFaults) as raised:
        load(None, {"CARTEIRO_LIMITS__CHECKOUTS_PER_HOUR": "9"})
    assert raised.value.faults == [
        "limits.checkouts_per_hour: must be at least limits.checkouts_per_minute, or 0 for no limit"
    ]
    assert load(None, {"CARTEIRO_LIMITS__CHECKOUTS_PER_HOUR": "0"}).limits.checkouts_per_hour == 0


APP = {
    "id": "zappy", "name": "Zappy", "redirect_uris": ["https://zappy.example/connected?x=1"],
    "receivers": ["https://hooks.zappy.example"],
}  # fmt: skip


def test_apps_are_read_from_the_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[[connect.apps]]\nid = "zappy"\nname = "Zappy"\n'
        f"redirect_uris = {APP['redirect_uris']}\nreceivers = {APP['receivers']}\n"
    )
    read = load(file, {})
    assert read.connect.apps[0].redirect_uris == ("https://zappy.example/connected?x=1",)
    assert load(None, {"CARTEIRO_CONNECT__APPS": json.dumps([APP])}) == read


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"id": "No"}, "must be a list of apps"),
        ({"redirect_uris": []}, "must be a list of apps"),
        ({"name": None}, "must be a list of apps"),
        ({"secret": "x"}, "must be a list of apps"),
        ({"redirect_uris": ["http://zappy.example/"]}, "must be an https URL"),
        ({"redirect_uris": ["https://zappy.example"]}, "must be an https URL"),
        ({"redirect_uris": ["https://zappy.example/#x"]}, "must be an https URL"),
        ({"redirect_uris": ["https://a@zappy.example/"]}, "must be an https URL"),
        ({"redirect_uris": ["https://*.zappy.example/"]}, "must be an https URL"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "must be an https URL"),
        ({"receivers": ["https://Zappy.example/"]}, "write 'https://Zappy.example/'"),
        ({"receivers": ["zappy.example"]}, "must be only scheme and host"),
    ],
)
def test_an_app_that_could_lead_elsewhere_is_refused(changed: dict[str, Any], fault: str) -> None:
    apps = [{name: value for name, value in {**APP, **changed}.items() if value is not None}]
    with pytest.raises(ConfigFaults, match=re.escape(fault)):
        load(None, {"CARTEIRO_CONNECT__APPS": json.dumps(apps)})
    local = {**APP, "redirect_uris": ["http://127.0.0.1:9000/back", "http://[::1]/back"]}
    load(None, {"CARTEIRO_CONNECT__APPS": json.dumps([local])})
    with pytest.raises(ConfigFaults, match="two apps have the id"):
        load(None, {"CARTEIRO_CONNECT__APPS": json.dumps([APP, APP])})
