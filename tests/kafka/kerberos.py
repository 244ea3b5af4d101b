"""A KDC of MIT Kerberos for one test session, in a separate directory, as an ordinary process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

REALM = "KCONSUMER.TEST"
SERVICE = f"kafka/localhost@{REALM}"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing_programs() -> list[str]:
    """The programs that a KDC needs and that are not installed."""
    return [name for name in PROGRAMS if _program(name) is None]


WITHOUT_KDC = f"a KDC needs {', '.join(missing_programs())}: apt-get install krb5-kdc krb5-admin-server krb5-user"


class Kdc:
    """A realm with the broker's principal; a context manager."""

    def __enter__(self) -> Kdc:
        self.directory = Path(tempfile.mkdtemp(prefix="kconsumer-kdc-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.config = self.directory / "krb5.conf"
        self.config.write_text(f"""
[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{self.port}
  }}
[domain_realm]
  localhost = {REALM}
""")
        (self.directory / "kdc.conf").write_text(f"""
[kdcdefaults]
  kdc_listen = 127.0.0.1:{self.port}
  kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
  {REALM} = {{
    database_name = {self.directory}/principal
    key_stash_file = {self.directory}/stash
    acl_file = {self.directory}/acl
    max_life = 10h
  }}
""")
        self.environment = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
                            "KRB5CCNAME": f"FILE:{self.directory}/cache"}
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-password")
        command = [_program("krb5kdc") or "krb5kdc", "-n", "-r", REALM]
        self.process = subprocess.Popen(command, env=os.environ | self.environment, stderr=subprocess.STDOUT,
                                        stdout=(self.directory / "kdc.log").open("wb"))
        self.broker_keytab = self.add("kafka/localhost", "broker.keytab")
        self._await_port()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run([_program(program) or program, *arguments], env=os.environ | self.environment,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")

    def _await_port(self) -> None:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError((self.directory / "kdc.log").read_text()) from None
                time.sleep(0.05)

    def listener(self) -> dict[str, object]:
        """A listener on which the broker logs people of the realm in. Its JVM needs `java_options`."""
        login = (f'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true '
                 f'keyTab="{self.broker_keytab}" principal="{SERVICE}";')
        return {"security.protocol": "SASL_PLAINTEXT", "host": "localhost", "sasl.enabled.mechanisms": "GSSAPI",
                "sasl.kerberos.service.name": "kafka", "gssapi.sasl.jaas.config": login}

    @property
    def java_options(self) -> list[str]:
        return [f"-Djava.security.krb5.conf={self.config}"]

    def add(self, principal: str, keytab: str) -> Path:
        """A principal whose key is in a keytab, which is returned."""
        path = self.directory / keytab
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}@{REALM}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {path} {principal}@{REALM}")
        return path

    def login(self, principal: str, keytab: Path) -> None:
        """kinit into the credential cache of `environment`."""
        self._run("kinit", "-k", "-t", str(keytab), f"{principal}@{REALM}")
