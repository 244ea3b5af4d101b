"""Owns: bugs that are planted one by one in a scratch copy, to show that the simulation, or a test, finds them.

Usage: python tools/planted_bugs.py [--scratch DIR] [--histories N] [NAME…]. Each bug is one statement of a function of
the core, changed. The function is known by its name, the statement by its tokens: other edits, new line breaks and
moves to another file do not matter. The copy (default build/planted) is built and its histories run until one fails.
Prints the seed that caught each. For a bug that histories cannot see, a test is run that must fail.
Exit status 1 when a bug was not caught, or could not be planted. Not part of CI: every bug takes a compilation. CI only
checks that each bug still has its place (tests/unit/tools/test_planted_bugs.py).

Threads: none (a developer's tool). Never: changes a file of this tree.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "setup.py", "pyproject.toml", "build/cython", "build/lib", "build/temp")


@dataclass(frozen=True)
class Bug:
    name: str
    place: str     # Class.method, or a function
    right: str     # the statement or a part of it; with leading blanks: whole lines
    wrong: str
    protocols: tuple[str, ...] = ("consumer", "classic")
    test: str = ""  # run instead of histories


BUGS = (
    Bug("records are returned after the session is over", "FetchHandler.holds_back",
        "self.session.hold_back(self.clock.boot_us())", "False"),
    Bug("commits are sent after the session is over", "CommitRequestManager._session_is_over",
        "self.shared.session.over(self.delegate.clock.boot_us())", "False"),
    Bug("a commit that waits for its connection is sent after the session is over",
        "CommitRequestManager.on_session_over",
        "self.delegate.fail_unsent_of(<void*>self, Status(<int>ERR_TIMED_OUT, string(NOT_SENT)))", "False"),
    Bug("a session counts from the receipt of the answer", "ClassicGroupManager._on_heartbeat",
        "            self.heartbeat.on_success()\n            self._heard(self.heartbeat_boot_us)\n",
        "            self.heartbeat.on_success()\n            self._heard(self.delegate.clock.boot_us())\n",
        ("classic",)),
    Bug("a call that holds records back is not woken when the session goes on", "MembershipManager._check_session",
        "            self.background.attention.set(<uint32_t>ATTENTION_CONTROL)\n"
        "            self.background.wake()\n",
        "            self.background.attention.set(<uint32_t>ATTENTION_CONTROL)\n",
        test="tests/unit/managers/test_session.py::test_a_waiting_call_is_woken_when_the_session_goes_on"),
    Bug("a connection that was given up is closed in order", "Connector.lose",
        "            reset_on_close(c.fd)\n", "            pass\n",
        test="tests/unit/network/test_silence.py::test_a_given_up_connection_is_reset_and_not_closed_in_order"),
    Bug("partitions are taken away whose records are in the application's hands", "SubscriptionState.take_away",
        "how == TAKE_FREE and self._in_hand(partitions)", "how == TAKE_FREE and False"),
    Bug("a call puts down the records that it returns", "SubscriptionState._put_down",
        "            if p.hand_call == self.call:\n", "            if False:\n",
        test="tests/unit/managers/test_without_the_application.py::"
             "test_putting_down_one_partition_keeps_the_records_of_another_in_hand"),
    Bug("records of lost partitions are returned with the error that comes before on_lost",
        "MembershipManager._lose", "        self.positions.subscription.drop_rows(self.ownership.owned())\n", ""),
    Bug("partitions given up by the network thread are not committed", "SubscriptionState.take_away",
        "                offsets.push_back(standing)\n", "                pass\n"),
    Bug("a partition given up by the network thread keeps its buffered records", "SubscriptionState._drop",
        "        p.assigned = False\n        p.position_epoch.store(self.next_epoch)\n",
        "        p.assigned = False\n"),
    Bug("the revocation is acknowledged before its commit has been made", "ConsumerHeartbeatManager.poll",
        "if self.membership.state == MEMBER_PARTITION_REVOKED and self.membership.revocation_committed():",
        "if self.membership.state == MEMBER_PARTITION_REVOKED:", ("consumer",)),
    Bug("a leave does not wait for the application's commits", "MembershipManager.may_leave",
        "return self.leave_wanted and not self.commits.held_busy()", "return self.leave_wanted"),
    Bug("a revocation waits for its own commit only", "MembershipManager._revoked",
        "        self.commits.hold(self.ownership.owned())\n        self.ownership.given_up()",
        "        self.ownership.given_up()"),
    Bug("the time of a leave is over when its callback ends", "GroupCore._end_subscription",
        "event.deadline_ms = in_ms(self.end_deadline(timeout_us))", "event.deadline_ms = self.clock.now_ms()"),
    Bug("a superseded commit is forgotten", "CommitRequestManager._notify",
        "            callback_event.merged = merged\n", ""),
    Bug("a commit whose request was lost counts as stored", "CommitRequestManager.on_failure",
        "self._answer_rest(<int>ERR_TIMED_OUT if status.code == <int>ERR_DESTROY else status.code, now_ms)",
        "self._answer_rest(0, now_ms)"),
    Bug("an offset that may be stored is forgotten when its commit has ended", "CommitRequestManager._answer_commit",
        "if is_in_doubt(code) and not is_newest:", "if False:",
        test="tests/unit/managers/test_commits_side_by_side.py::"
             "test_an_offset_that_may_be_stored_goes_out_again_though_its_commit_has_ended"),
    Bug("a held commit is not sent again under a newer epoch", "CommitRequestManager._is_ours",
        "if queued.held and queued.ours[i] or self.member.owns(offset.topic, offset.partition):", "if False:"),
    Bug("while commits keep a member from leaving it learns no newer epoch",
        "ConsumerHeartbeatManager._on_answer_while_leaving",
        "            if message.member_epoch != self.member.epoch:\n", "            if False:\n", ("consumer",)),
    Bug("a refused commit is not sent again while the member leaves", "CommitRequestManager._may_retry",
        "        if queued.lost or offset.error",
        "        if self.member.leaving:\n            return False\n        if queued.lost or offset.error",
        ("classic",)),
    Bug("a leader leaves a generation without its assignment", "ClassicGroupManager._finish_round",
        "if self.leader.keep(self.made):", "if False:", ("classic",)),
    Bug("a group waits for the assignor of an application in the callback of its leave",
        "MembershipManager.on_leave_callback",
        "        self.in_leave_callback = True\n", "", ("classic",),
        test="tests/unit/managers/test_application_assignors.py::"
             "test_a_leader_that_joined_keeps_the_owners_while_the_callback_of_its_leave_runs"),
    Bug("a leader gives the list of members away to the application's assignor", "GroupLeader._ask",
        "call.members = self.members", "call.members.swap(self.members)", ("classic",)),
    Bug("a bad batch stops its partition at once", "FetchErrors.on_bad_batch",
        "if failure.permanent or bad.attempts >= MOST_ATTEMPTS:", "if True:", ("assign", "consumer")),
    Bug("after a bad batch the position moves past it", "FetchErrors.on_bad_batch",
        "        p.fetch_offset.store(failure.resume_offset)\n", "", ("assign", "consumer")),
    Bug("a bad batch that was found is not fetched again", "FetchErrors._retry",
        "        self._delay(p, now_ms)\n        self._read_from(p, node, now_ms)\n",
        "        p.state = FETCH_STOPPED\n        self._delay(p, now_ms)\n", ("assign", "consumer")),
    Bug("the time of a leave is over before the sockets were read", "MembershipManager._poll_leave",
        "if self.delegate.read_ms >= self.leaving.deadline_ms:", "if now_ms >= self.leaving.deadline_ms:",
        test="tests/unit/managers/test_commits_before_leaving.py::"
             "test_a_commit_that_was_answered_while_the_process_stood_still_is_stored"),
    Bug("a target is taken while a heartbeat that reported less is unanswered", "ConsumerHeartbeatManager._add_owned",
        "        self.membership.ownership.report(reported)\n", "",
        test="tests/unit/managers/test_held_targets.py::"
             "test_a_target_waits_for_the_answer_to_a_heartbeat_that_reported_less"),
    Bug("a leader whose assignor failed leaves the generation incomplete", "ClassicGroupManager._keep_owners",
        "if (leaves or self.leader.has_owners()) and self.leader.keep(self.made):", "if False:",
        test="tests/unit/managers/test_application_assignors.py::"
             "test_a_failed_assignor_keeps_the_owners_and_is_asked_again"),
    Bug("a static member that missed a generation keeps its old partitions", "ClassicGroupManager._on_join",
        "missed = self._missed_generations(message)", "missed = False", ("classic",),
        test="tests/unit/managers/test_commits_before_leaving.py::"
             "test_a_static_member_that_missed_a_generation_loses_its_partitions"),
    Bug("a static member that unsubscribed while it joined has missed no generation",
        "ClassicGroupManager._missed_generations",
        "message.generation_id > self.generation + 1 and self.joined_with_partitions)",
        "message.generation_id > self.generation + 1 and not self.membership.ownership.owned().empty())",
        ("classic",),
        test="tests/unit/managers/test_commits_before_leaving.py::"
             "test_a_static_member_that_missed_a_generation_commits_nothing_it_has_revoked_since"),
    Bug("a position has the leader epoch of the last visible record", "FetchDecoder._add_rows",
        "entry.next_leader_epoch = item.job.last_leader_epoch",
        "entry.next_leader_epoch = (self.columns.runs.back().leader_epoch if rows > 0\n"
        "                                       else item.partition.position_leader_epoch.load())"),
    Bug("what is being assigned does not count as owned", "ConsumerHeartbeatManager._add_owned",
        "claimed = self.membership.ownership.claimed()", "claimed = self.membership.ownership.owned()", ("consumer",)),
    Bug("a revoked partition stays owned", "MembershipManager._revoked",
        "self.ownership.given_up()", "pass"),
    Bug("a member that was too slow never comes back", "MembershipManager._await_return",
        "if polls == self.polls_seen and not self._in_poll():\n            return STALE_SAMPLE_MS",
        "if True:\n            return STALE_SAMPLE_MS"),
    Bug("a rebalance that the coordinator announces is not joined", "ClassicGroupManager._on_rebalance_in_progress",
        'self._want_rejoin(b"group is already rebalancing")', "pass", ("classic",)),
    Bug("the position to be committed is one too far", "GroupCore._standing",
        "                out.push_back(found)\n",
        "                found.offset += 1\n                out.push_back(found)\n"),
    Bug("reading continues one offset after the committed one", "FetchPositions.on_committed",
        "            self.start_at(p, offset, leader_epoch)\n        else:",
        "            self.start_at(p, offset + 1, leader_epoch)\n        else:"),
    Bug("aborted transactions are taken in the order of their ends", "FetchSender._queue_records",
        "item.job.add_aborted(aborted)", "item.job.aborted.push_back(aborted)", ("assign",)),
    Bug("the next fetch skips an offset", "FetchSender._take_data",
        "p.fetch_offset.store(next_offset)", "p.fetch_offset.store(next_offset + 1)", ("assign",)),
    Bug("the session does not hear what was read beside it", "FetchSender._take_data",
        "                session.want(dereference(entry))\n                if p.ends_at(next_offset):",
        "                if session.named == 0:\n                    session.want(dereference(entry))\n"
        "                if p.ends_at(next_offset):", ("assign",)),
    Bug("records that were fetched before a seek are given", "FetchHandler._is_stale",
        "return entry.position_epoch != entry.partition.position_epoch.load()", "return False", ("assign",)),
    Bug("a partition whose Fetch was refused waits for 20 s", "FetchErrors._delay",
        "        p.request.on_failure(now_ms, dereference(self.backoff), self.jitter)\n",
        "        p.request.on_failure(now_ms, dereference(self.backoff), self.jitter)\n"
        "        p.request.not_before_ms += 20000\n", ("assign", "consumer")),
    Bug("a consumer that was made in a child counts as the parent's", "ConsumerParts.in_child",
        "return self.fork_generation != fork_count", "return fork_count != 0",
        test="tests/embedded/test_fork.py::"
             "test_the_network_thread_of_a_child_process_ends_before_its_memory"),
    Bug("a child that drops its parent's consumer joins its thread", "ConsumerParts.in_child",
        "return self.fork_generation != fork_count", "return False",
        test="tests/embedded/test_fork.py::test_a_child_that_drops_its_parents_consumer_joins_no_thread"),
    Bug("no memory for a batch stops its partition at once", "FetchErrors.on_bad_batch",
        "if status.code == <int>ERR_CRIT_SYS_RESOURCE:", "if False:",
        test="tests/unit/managers/test_no_memory_for_a_batch.py::"
             "test_a_batch_without_memory_is_reported_once_and_fetched_until_there_is_memory"),
    Bug("metadata that lacks what was wanted is asked for again without backoff", "MetadataRequestManager._take_topics",
        "            self.news.on_failure(now_ms, dereference(self.backoff), self.jitter)", "            pass",
        test="tests/unit/managers/test_metadata_backoff.py::"
             "test_missing_topics_are_requested_with_growing_backoff"),
    Bug("a commit that was reported as failed is sent", "CommitRequestManager._refuse",
        "elif queued.deadlines[i] <= now_ms and queued.deadlines[i] < queued.deadline_ms:", "elif False:",
        test="tests/unit/managers/test_commits_side_by_side.py::"
             "test_a_commit_that_was_reported_as_failed_is_not_sent"),
    Bug("a position counts as committed while a newer commit is on its way", "GroupCore._standing",
        "self._processed_only, found):",
        "self._processed_only, found) and found.offset != p.committed_offset.load():"),
    Bug("a position that went back is not committed", "GroupCore._standing",
        "self._processed_only, found):",
        "self._processed_only, found) and found.offset > p.committed_offset.load():"),
    Bug("an exception of on_commit ends close()", "ConsumerCore._closing_call",
        "if self.on_loop or self.in_child() or failures.is_second(raised):", "if True:"),
    Bug("unsubscribe() in on_revoke forgets what the callback has unassigned", "GroupCore._leaving",
        "        if self.giving_up is not None:\n", "        if False:\n"),
    Bug("a static member does not release the instance id that it has itself", "ConsumerHeartbeatManager._on_error",
        "elif code == <int>UNRELEASED_INSTANCE_ID and self.joins > 1:", "elif False:", ("consumer",)),
    Bug("a late answer to a leave releases the instance id of the join after it",
        "ConsumerHeartbeatManager._take_release",
        "        if self.joins == self.joins_at_end:\n", "        if True:\n",
        test="tests/unit/managers/test_static_members.py::"
             "test_a_late_answer_to_a_leave_says_nothing_of_the_join_after_it"),
    Bug("a static member does not begin the rebalance that its former life owed",
        "ClassicGroupManager._rejoin_if_needed",
        "        if self.orphans.phase == CHECK_FOUND:\n", "        if False:\n", ("classic",)),
    Bug("a JoinGroup stays at a former coordinator", "ClassicGroupManager.poll",
        "if (self.joining.in_flight and self.coordinator.node >= 0 and self.coordinator.node != self.join_node",
        "if (False",
        test="tests/unit/managers/test_classic_group_faults.py::test_a_waiting_join_follows_the_coordinator"),
    Bug("an assignment of another subscription is taken", "ClassicGroupManager._take_assignment",
        "        if not self._is_subscribed(assigned):\n            self.rejoin_reason",
        "        if False:\n            self.rejoin_reason",
        test="tests/unit/managers/test_classic_group_faults.py::test_an_assignment_of_other_topics_is_not_taken"),
    Bug("a batch that the broker refuses drops what it sent before", "FetchErrors.on_bad_batch",
        "if not failure.refused:", "if True:",
        test="tests/unit/managers/test_bad_batches.py::test_undecoded_records_before_a_corrupt_batch_are_returned"),
    Bug("a cancelled call fetches again only what it has let go", "FetchHandler._fetch_again",
        "self.subscription.refetch(entry.partition, entry.position_epoch, self.used_first[first])",
        "self.subscription.refetch(entry.partition, entry.position_epoch, self.used_first[i])",
        test="tests/unit/consumer/test_loop_core.py::"
             "test_a_cancelled_call_gives_back_all_records_if_another_task_changed_a_partition"),
    Bug("a commit made outside the group goes out as the member's", "CommitRequestManager._is_outside",
        "return not queued.as_member and self.sent.as_member", "return False",
        test="tests/unit/managers/test_commits_side_by_side.py::"
             "test_a_commit_from_before_subscribe_does_not_go_out_as_a_members"),
    Bug("asynchronous commits queue one by one", "CommitRequestManager._queue",
        "        if plain:\n            queued = self.merging.join(",
        "        if False:\n            queued = self.merging.join(",
        test="tests/unit/managers/test_commit_request_manager.py::"
             "test_many_commits_while_the_coordinator_is_away_take_little_memory_and_are_all_reported"),
    Bug("a list_topics() that times out starts the clock of the re-bootstrap", "MetadataRequestManager.on_failure",
        "if request.kind == KIND_UPDATE and self.failing_since_ms == 0:", "if self.failing_since_ms == 0:",
        test="tests/unit/managers/test_metadata_backoff.py::"
             "test_many_lists_that_time_out_do_not_start_the_clock"),
    Bug("a new connection replaces a parked Fetch under TLS and SASL too", "FetchSender._interrupt_parked",
        "if self.config.connections_are_costly or now_ms < session.no_renewal_until_ms:",
        "if now_ms < session.no_renewal_until_ms:",
        test="tests/unit/managers/test_costly_connections.py::"
             "test_no_new_connection_replaces_a_parked_fetch_under"),
    Bug("a new connection replaces a parked Fetch whenever a partition is resumed", "FetchSender._interrupt_parked",
        "if self.config.connections_are_costly or now_ms < session.no_renewal_until_ms:",
        "if self.config.connections_are_costly:",
        test="tests/unit/managers/test_costly_connections.py::"
             "test_a_new_connection_replaces_a_parked_fetch_without_tls_and_sasl"),
    Bug("on_revoke runs while consume() has records in hand", "ConsumerCore.attend",
        "if in_hand and bits & <uint32_t>ATTENTION_REBALANCE:", "if False:",
        test="tests/unit/consumer/test_group_core.py::"
             "test_a_rebalance_waits_until_the_records_in_hand_are_returned"),
)


def copy_tree(scratch: Path) -> None:
    for name in COPIED:
        for source in [ROOT / name] if (ROOT / name).exists() else ROOT.glob(name + "*"):
            target = scratch / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
            else:
                shutil.copy2(source, target)


class StaleError(Exception):
    """The statement that a bug changes is not in its function, or is there more than once."""


@dataclass(frozen=True)
class Found:
    """A function in a source."""

    source: Path
    text: str  # of the source
    start: int
    end: int

    def planted(self, bug: Bug) -> str:
        """Return the source with the bug in it.

        Raises:
            StaleError: `bug.right` does not occur exactly once in the function.
        """
        matches = list(re.compile(pattern_of(bug.right), re.M).finditer(self.text, self.start, self.end))
        if len(matches) != 1:
            raise StaleError(f"its statement occurs {len(matches)} times in {bug.place}")
        match = matches[0]
        wrong = bug.wrong
        if bug.right[0] == " ":  # whole lines, perhaps in another depth now
            deeper = indent_of(match[0]) - indent_of(bug.right)
            wrong = re.sub(r"^ *(?=\S)", lambda blanks: " " * (len(blanks[0]) + deeper), wrong, flags=re.M)
        return self.text[:match.start()] + wrong + self.text[match.end():]


def indent_of(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def pattern_of(code: str) -> str:
    """Return a pattern of the same tokens, with any blanks and line breaks between them."""
    tokens = re.findall(r"\w+|[^\w\s]", code)
    gaps = [r"\s+" if before[-1].isalnum() and after[0].isalnum() else r"\s*" for before, after in pairwise(tokens)]
    body = "".join(re.escape(token) + gap for token, gap in zip(tokens, [*gaps, ""], strict=True))
    start = "^ *" if code[0] == " " else r"(?<!\w)" if tokens[0].isalnum() else ""
    end = " *(?:#.*)?\n" if code[-1] == "\n" else r"(?!\w)" if tokens[-1].isalnum() else ""
    return f"{start}{body}{end}"


def find(core: Path, place: str) -> Found:
    """Find a function in the sources.

    Raises:
        StaleError: it is not there, or is there more than once.
    """
    cls, _, name = place.rpartition(".")
    depth = " {4}" if cls else ""
    function = re.compile(rf"^{depth}(?:cdef|cpdef|def)\b[^=\n]*?\b{name}\(.*\n(?:(?:{depth} .*|\s*|#.*)\n)*", re.M)
    found = []
    for source in sorted([*core.rglob("*.pyx"), *core.rglob("*.pxi")]):
        text = source.read_text()
        whole = re.compile(rf"^cdef class {cls}\b.*\n(?:(?: .*|\s*|#.*)\n)*" if cls else r"\A[\s\S]*", re.M)
        for body in whole.finditer(text):
            found += [Found(source, text, match.start(), match.end())
                      for match in function.finditer(text, body.start(), body.end())]
    if len(found) != 1:
        raise StaleError(f"{place} occurs {len(found)} times in the core")
    return found[0]


def module_of(source: Path) -> Path:
    """Return the module that includes a file, or the file itself if it is a module."""
    if source.suffix == ".pyx":
        return source
    return next(module for module in source.parent.glob("*.pyx") if f'include "{source.name}"' in module.read_text())


class Planted:
    """A bug in its place; leaving the block puts source and module back, newer than all they are made from."""

    def __init__(self, scratch: Path, bug: Bug) -> None:
        found = find(scratch / "src" / "_core", bug.place)
        self.source = found.source
        module = module_of(self.source)
        made = [scratch / "build" / "cython" / module.relative_to(scratch).with_suffix(".cpp")]
        made += module.parent.glob(f"{module.stem}.cpython-*.so")
        self.kept = {path: path.read_bytes() for path in (self.source, *made)}
        self.wrong = found.planted(bug)

    def __enter__(self) -> None:
        self.source.write_text(self.wrong)

    def __exit__(self, *exc_info: object) -> None:
        for path, content in self.kept.items():
            path.unlink()
            path.write_bytes(content)
            path.chmod(0o755)


def build(scratch: Path) -> None:
    done = subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], cwd=scratch, text=True,
                          capture_output=True, check=False, env={**os.environ, "KCONSUMER_DEBUG": "1"})
    if done.returncode:
        raise SystemExit(f"the scratch copy does not build:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def hunt(scratch: Path, protocol: str, histories: int) -> str:
    """Return the line about the first failed seed, or an empty text."""
    environment = {**os.environ, "PYTHONPATH": str(scratch / "planted")}
    done = subprocess.run([sys.executable, "-m", "tests.simulation", "--protocol", protocol, "--seeds", "0",
                           str(histories)], cwd=scratch, text=True, capture_output=True, check=False, env=environment)
    found = re.search(r"^seed \d+: .*", done.stdout, re.M)
    if found:
        return f"{protocol} {found[0]}"
    return f"{protocol}: the process died ({done.returncode})" if done.returncode else ""


def run_test(scratch: Path, test: str) -> str:
    """Return the line about the test if it failed, or an empty text."""
    environment = {**os.environ, "PYTHONPATH": str(scratch / "planted")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test], cwd=scratch,
                          text=True, capture_output=True, check=False, env=environment)
    if done.returncode < 0:
        return f"{test}: the process died ({done.returncode})"
    # Other statuses than 1 say that the test did not run.
    return f"{test} fails" if done.returncode == 1 else ""


def package(scratch: Path) -> None:
    """kconsumer with its core as one package, so that it is found before the one of this tree."""
    place = scratch / "planted" / "kconsumer"
    place.mkdir(parents=True, exist_ok=True)
    for entry in [*(scratch / "src" / "kconsumer").iterdir(), scratch / "src" / "_core"]:
        link = place / entry.name
        if entry.name != "__pycache__" and not link.is_symlink():
            link.symlink_to(entry)


def main() -> int:
    parser = argparse.ArgumentParser(description="Show that the simulation finds planted bugs.")
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "planted")
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("names", nargs="*", help="parts of the names of the bugs to plant; all without any")
    options = parser.parse_args()
    scratch = options.scratch.resolve()
    copy_tree(scratch)
    package(scratch)
    missed = stale = 0
    for bug in BUGS:
        if options.names and not any(name in bug.name for name in options.names):
            continue
        try:
            with Planted(scratch, bug):
                build(scratch)
                if bug.test:
                    caught = run_test(scratch, bug.test)
                else:
                    caught = next(filter(None, (hunt(scratch, p, options.histories) for p in bug.protocols)), "")
        except StaleError as e:
            stale += 1
            print(f"{bug.name}: NOT PLANTED: {e}", flush=True)
            continue
        missed += not caught
        print(f"{bug.name}: {caught or 'NOT CAUGHT'}", flush=True)
    print(f"{missed} not caught, {stale} not planted")
    return int(missed + stale > 0)


if __name__ == "__main__":
    sys.exit(main())
