"""Batch and stream from listeners that demand TLS and SASL, as users write the options; what is refused says why, and
no secret is shown. The Python workers that read are separate processes, as on a cluster."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import admin
from pyspark.errors import PySparkException, StreamingQueryException

from kconsumer.errors import ConfigurationError
from kconsumer.ranges.options import ReadOptions
from kconsumer.testing import KafkaCluster
from tests.certificates import Authority
from tests.kafka.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.kafka.sasl_cluster import PASSWORD, USER, add_scram_users, quoted, sasl_listener
from tests.kafka.security_examples import examples
from tests.kafka.security_examples import run as run_example

KEY_PASSWORD = "opens-the-key"
WRONG = "wr0ng-but-secret"
RECORDS = {0: 400, 1: 300}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

Options = dict[str, str]


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider() as one:
        yield one


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Certificates of the broker and of the job."""
    folder = tmp_path_factory.mktemp("secure")
    ours = Authority("Test CA")
    identity = ours.issue("spark job", hosts=(), client=True)
    certificate, key = identity.write(folder, "job", KEY_PASSWORD)
    store = folder / "job.p12"
    store.write_bytes(identity.keystore(KEY_PASSWORD))
    return SimpleNamespace(
        ca=str(ours.write(folder / "ca.pem")), other_ca=str(Authority("Other CA").write(folder / "other.pem")),
        broker=str(ours.issue("broker").write_both(folder / "broker.pem")), certificate=str(certificate),
        key=str(key), store=str(store), ca_pem=ours.pem, key_lines=key.read_text().splitlines()[1:-1])


@pytest.fixture(scope="module")
def secured(provider: OidcProvider, files: SimpleNamespace) -> Iterator[KafkaCluster]:
    """One broker with a listener for each way in, and a topic of 700 records."""
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": files.broker, "ssl.truststore.type": "PEM",
           "ssl.truststore.location": files.ca}
    listeners: dict[str, dict[str, object]] = {
        "MUTUAL": {"security.protocol": "SSL", "ssl.client.auth": "required", **tls},
        "SASL": sasl_listener(),
        "ENCRYPTED": sasl_listener(**{"security.protocol": "SASL_SSL", **tls}),
        "OIDC": sasl_listener(**{"security.protocol": "SASL_SSL", **tls, **provider.listener}),
    }
    with KafkaCluster(1, listeners=listeners, java_options=provider.java_options) as cluster:
        add_scram_users(cluster)
        cluster.create_topic("t", 2)
        cluster.produce("t", [{"value": b"%d" % n, "partition": p} for p, count in RECORDS.items()
                              for n in range(count)])
        yield cluster


def client_certificate(files: SimpleNamespace, provider: OidcProvider) -> Options:
    return {"kafka.security.protocol": "ssl", "kafka.ssl.ca.location": files.ca,
            "kafka.ssl.certificate.location": files.certificate, "kafka.ssl.key.location": files.key,
            "kafka.ssl.key.password": KEY_PASSWORD}


def client_certificate_as_in_java(files: SimpleNamespace, provider: OidcProvider) -> Options:
    return {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": files.ca_pem, "kafka.ssl.keystore.type": "PKCS12",
            "kafka.ssl.keystore.location": files.store, "kafka.ssl.keystore.password": KEY_PASSWORD}


def plain(files: SimpleNamespace, provider: OidcProvider) -> Options:
    return {"kafka.security.protocol": "sasl_plaintext", "kafka.sasl.mechanisms": "PLAIN",
            "kafka.sasl.username": USER, "kafka.sasl.password": PASSWORD}


def scram_as_in_java(files: SimpleNamespace, provider: OidcProvider) -> Options:
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    return {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "SCRAM-SHA-256",
            "kafka.sasl.jaas.config": f'{SCRAM} required username="{USER}" password="{escaped}";'}


def scram_inside_tls(files: SimpleNamespace, provider: OidcProvider) -> Options:
    return {"kafka.security.protocol": "sasl_ssl", "kafka.ssl.ca.location": files.ca,
            "kafka.sasl.mechanism": "SCRAM-SHA-512", "kafka.sasl.username": USER, "kafka.sasl.password": PASSWORD}


def oidc(files: SimpleNamespace, provider: OidcProvider) -> Options:
    return {"kafka.security.protocol": "SASL_SSL", "kafka.ssl.ca.location": files.ca,
            "kafka.sasl.mechanism": "OAUTHBEARER", "kafka.sasl.oauthbearer.method": "oidc",
            "kafka.sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "kafka.sasl.oauthbearer.token.endpoint.allow.http": True,
            "kafka.sasl.oauthbearer.client.id": CLIENT_ID, "kafka.sasl.oauthbearer.client.secret": CLIENT_SECRET,
            "kafka.sasl.oauthbearer.scope": "read"}


def unsecured(files: SimpleNamespace, provider: OidcProvider) -> Options:
    return {"kafka.security.protocol": "sasl_plaintext", "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.enable.sasl.oauthbearer.unsecure.jwt": "true", "kafka.sasl.oauthbearer.config": f"principal={USER}"}


WAYS: dict[Callable[[SimpleNamespace, OidcProvider], Options], str] = {
    client_certificate: "MUTUAL", client_certificate_as_in_java: "MUTUAL", plain: "SASL", scram_as_in_java: "SASL",
    scram_inside_tls: "ENCRYPTED", oidc: "OIDC", unsecured: "SASL"}


class Job:
    """Reads of the topic through one way in; keeps all that Spark shows of them."""

    def __init__(self, spark: Any, options: Options, folder: Path) -> None:
        self._spark = spark
        self._options = options
        self._folder = folder
        self.shown: list[str] = []

    def frame(self) -> Any:
        found = self._spark.read.format("kconsumer").options(**self._options).load()
        self.shown += [str(found), found._jdf.queryExecution().analyzed().toString()]
        return found

    def batch(self) -> dict[int, int]:
        """How many records of each partition."""
        frame = self.frame().groupBy("partition").count()
        found = {row[0]: row[1] for row in frame.collect()}
        execution = frame._jdf.queryExecution()
        self.shown += [execution.toString(), execution.stringWithStats()]
        return found

    def stream(self) -> dict[int, int]:
        """The same, as one AvailableNow query finds it."""
        rows = self._folder / "rows"
        frame = self._spark.readStream.format("kconsumer").options(**self._options).load()
        for _attempt in range(3):
            query = (frame.writeStream.format("parquet").option("path", str(rows))
                     .option("checkpointLocation", str(self._folder / "checkpoint")).trigger(availableNow=True).start())
            try:
                query.awaitTermination()
                break
            except StreamingQueryException as error:
                # Spark gives a Python worker ten seconds to start, whatever else the machine does.
                if "failed to connect back" not in str(error):
                    self.shown.append(f"{error} {error!r}")
                    raise
        self.shown += [str(query.status), *(progress.json for progress in query.recentProgress),
                       query._jsq.explainInternal(True)]
        found = self._spark.read.parquet(str(rows)).groupBy("partition").count().collect()
        return {row[0]: row[1] for row in found}

    def everything_shown(self) -> str:
        """Also the files of the checkpoint."""
        kept = [path.read_text() for path in (self._folder / "checkpoint").rglob("*")
                if path.is_file() and path.suffix != ".crc"]
        assert self.shown
        return "\n".join(self.shown + kept)


Way = Callable[[SimpleNamespace, OidcProvider], Options]


@pytest.fixture
def job(
    spark: Any, secured: KafkaCluster, provider: OidcProvider, files: SimpleNamespace, tmp_path: Path
) -> Callable[..., Job]:
    """``job(way, **more)``: with further options, or others."""

    def make(way: Way, more: Options | None = None) -> Job:
        options = {"kafka.bootstrap.servers": secured.bootstrap(WAYS[way]), "subscribe": "t",
                   "startingOffsets": "earliest", **way(files, provider), **(more or {})}
        return Job(spark, options, tmp_path)

    return make


@pytest.fixture
def assert_hidden(files: SimpleNamespace) -> Callable[[str], None]:
    """That a text shows no secret of any test here."""
    secrets = [KEY_PASSWORD, PASSWORD, quoted(PASSWORD), CLIENT_SECRET, WRONG, "carols-first", *files.key_lines]

    def check(text: str) -> None:
        assert not [secret for secret in secrets if secret in text]

    return check


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_batch_and_a_stream(job: Callable[..., Job], way: Way, assert_hidden: Callable[[str], None]) -> None:
    run = job(way)
    assert run.batch() == RECORDS
    assert run.stream() == RECORDS
    assert_hidden(run.everything_shown())


def test_the_example_of_the_documentation(spark: Any, secured: KafkaCluster, files: SimpleNamespace) -> None:
    (code,) = examples("Spark")[""]
    places = {'"broker:9094"': repr(secured.bootstrap("ENCRYPTED")), '"/etc/kafka/ca.pem"': repr(files.ca),
              '"reader"': repr(USER), '"…"': repr(PASSWORD), '"flights"': '"t"'}
    assert run_example(code, {"spark": spark}, places)["frame"].count() == sum(RECORDS.values())


REFUSED = {
    "PLAIN": (plain, "kafka.sasl.password", "check sasl.username and sasl.password"),
    "SCRAM": (scram_inside_tls, "kafka.sasl.password", "check sasl.username and sasl.password"),
    "CA": (scram_inside_tls, "kafka.ssl.ca.location", "signed by 'CN=Test CA', which is not among the trusted"),
    "OIDC": (oidc, "kafka.sasl.oauthbearer.client.secret", "HTTP status 401: invalid_client"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(
    job: Callable[..., Job], secured: KafkaCluster, files: SimpleNamespace, name: str,
    assert_hidden: Callable[[str], None],
) -> None:
    """On the driver, which asks the broker first: broker, cause and remedy."""
    way, option, said = REFUSED[name]
    run = job(way, {option: files.other_ca if name == "CA" else WRONG})
    with pytest.raises(PySparkException) as raised:
        run.batch()
    text = f"{raised.value} {raised.value!r}"
    assert "AuthenticationError" in text
    assert said in text
    if way is not oidc:  # there it is the provider who refuses
        assert secured.bootstrap(WAYS[way]) in text
    assert_hidden(run.everything_shown() + text)


def test_a_wrong_password_ends_the_streaming_query(
    job: Callable[..., Job], secured: KafkaCluster, assert_hidden: Callable[[str], None]
) -> None:
    run = job(plain, {"kafka.sasl.password": WRONG})
    with pytest.raises(StreamingQueryException, match=r"check sasl\.username and sasl\.password") as raised:
        run.stream()
    assert secured.bootstrap("SASL") in str(raised.value)
    assert_hidden(run.everything_shown() + str(raised.value))


def test_an_executor_that_is_refused(
    job: Callable[..., Job], secured: KafkaCluster, assert_hidden: Callable[[str], None]
) -> None:
    """The password is changed when the read has been planned: the tasks say why, through the driver."""
    set_password(secured, "carol", "carols-first")
    run = job(scram_inside_tls, {"kafka.sasl.username": "carol", "kafka.sasl.password": "carols-first"})
    rows = run.frame().rdd
    assert rows.getNumPartitions() == len(RECORDS)
    set_password(secured, "carol", "carols-second")
    with pytest.raises(Exception) as raised:
        rows.count()
    text = str(raised.value)
    assert "AuthenticationError" in text
    assert "t [0] offsets 0 to 400, at offset 0" in text or "t [1] offsets 0 to 300, at offset 0" in text
    assert secured.bootstrap("ENCRYPTED") in text
    assert "check sasl.username and sasl.password" in text
    assert_hidden(text + run.everything_shown())


def set_password(cluster: KafkaCluster, user: str, password: str) -> None:
    change = admin.UserScramCredentialUpsertion(
        user, admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_512, 4096), password.encode())
    client = admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for done in client.alter_user_scram_credentials([change]).values():
        done.result(30)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"kafka.oauth_cb": "package.module:function"},
        {"kafka.sasl.oauthbearer.config": "scope=read"},
    ],
)
def test_a_token_that_only_a_function_could_give(more: Options) -> None:
    """Options are text: a function cannot be given, and executors could not be handed a token that is renewed."""
    with pytest.raises(ConfigurationError) as raised:
        ReadOptions.parse({"kafka.bootstrap.servers": "broker:1", "subscribe": "t",
                           "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "OAUTHBEARER", **more})
    assert "kafka.sasl.oauthbearer.method=oidc" in str(raised.value)
    assert "oauth_cb" in str(raised.value)


def test_options_show_no_property(
    files: SimpleNamespace, provider: OidcProvider, assert_hidden: Callable[[str], None]
) -> None:
    """They travel to the executors with their secrets, as those of Spark's own source do; nothing prints one."""
    for way in WAYS:
        parsed = ReadOptions.parse({"kafka.bootstrap.servers": "b:1", "subscribe": "t", **way(files, provider)})
        assert_hidden(f"{parsed!r} {parsed}")
        assert pickle.loads(pickle.dumps(parsed)) == parsed


LOGGED = """
import json, sys, urllib.request
from tests.spark.session import session

folder, options = sys.argv[1], json.loads(sys.stdin.read())
spark = session("logged", spark_eventLog_enabled="true", spark_eventLog_dir="file://" + folder,
                spark_eventLog_compress="false", spark_ui_enabled="true", spark_ui_port="0")
frame = spark.read.format("kconsumer").options(**options).load().groupBy("partition").count()
frame.explain(True)
frame.explain("formatted")
print("found", sum(row[1] for row in frame.collect()))
try:
    spark.read.format("kconsumer").options(**{**options, "kafka.sasl.password": sys.argv[2]}).load().collect()
except Exception as refused:
    print("refused", refused, repr(refused))
context = spark.sparkContext
for page in ("environment/", "SQL/", "SQL/execution/?id=0", "jobs/", "stages/",
             f"api/v1/applications/{context.applicationId}/sql?details=true&planDescription=true",
             f"api/v1/applications/{context.applicationId}/environment"):
    with urllib.request.urlopen(f"{context.uiWebUrl}/{page}") as shown:
        print("page", page, shown.read().decode())
spark.stop()
"""


def test_no_secret_in_the_event_log_or_the_ui(
    secured: KafkaCluster, provider: OidcProvider, files: SimpleNamespace, tmp_path: Path,
    assert_hidden: Callable[[str], None],
) -> None:
    """The traces of a query that remain for later readers; one query succeeds, one is refused."""
    options = {"kafka.bootstrap.servers": secured.bootstrap(WAYS[plain]), "subscribe": "t",
               "startingOffsets": "earliest", **plain(files, provider)}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", LOGGED, str(tmp_path), WRONG], input=json.dumps(options), text=True, timeout=110,
        capture_output=True, check=False, cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests")])})
    assert done.returncode == 0, done.stderr
    assert f"found {sum(RECORDS.values())}" in done.stdout and "refused " in done.stdout
    assert "page api/v1/applications" in done.stdout
    events = "\n".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".crc")
    assert "SparkListenerSQLExecutionStart" in events and "kconsumer" in events
    assert_hidden(events + done.stdout + done.stderr)
