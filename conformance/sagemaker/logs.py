"""Tests CloudWatch Logs with boto3: clients put, filter, follow, keep and delete log events.

python logs.py
"""

import json
import time

import boto3
from statements import answers, finish, proven, refused

GROUP = "/conformance/logs"
logs = boto3.client("logs")


def now():
    return int(time.time() * 1000)


def put(stream, messages, at=None):
    events = [{"timestamp": at or now(), "message": message} for message in messages]
    return logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)


def filtered(pattern):
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=GROUP, filterPattern=pattern)
    return [event["message"] for page in pages for event in page["events"]]


class Tail:
    """Makes the calls of AWS CLI v2's `aws logs tail --follow`, without the five seconds between two polls.

    It reads from a start time, page by page. After each page it remembers only the ids of events of the newest millisecond. After the last page it
    polls again from that millisecond.
    """

    def __init__(self, since, **asked):
        self.asked = {"logGroupName": GROUP, "interleaved": True, "startTime": since, **asked}
        self.known = {}

    def look(self):
        found = []
        while True:
            answer = logs.filter_log_events(**self.asked)
            for event in answer["events"]:
                ids = self.known.setdefault(event["timestamp"], set())
                if event["eventId"] not in ids:
                    ids.add(event["eventId"])
                    found.append(event["message"])
            if self.known:
                newest = max(self.known)
                self.known = {newest: self.known[newest]}
            if "nextToken" in answer:
                self.asked["nextToken"] = answer["nextToken"]
                continue
            self.asked.pop("nextToken", None)
            self.asked["startTime"] = max(self.known, default=self.asked["startTime"])
            return found


def streams():
    logs.create_log_group(logGroupName=GROUP)
    for name in ["a/1", "a/2", "b/1"]:
        logs.create_log_stream(logGroupName=GROUP, logStreamName=name)
    put("a/1", ["first"], now() - 3000)
    put("b/1", ["second"], now() - 2000)
    put("a/2", ["third"], now() - 1000)

    def names(**asked):
        pages = logs.get_paginator("describe_log_streams").paginate(
            logGroupName=GROUP, PaginationConfig={"PageSize": 2}, **asked
        )
        return [stream["logStreamName"] for page in pages for stream in page["logStreams"]]

    answers("DescribeLogStreams lists streams by name in pages", names, ["a/1", "a/2", "b/1"])
    answers("DescribeLogStreams lists streams by prefix", lambda: names(logStreamNamePrefix="a/"), ["a/1", "a/2"])
    answers(
        "DescribeLogStreams lists the latest written streams first",
        lambda: names(orderBy="LastEventTime", descending=True),
        ["a/2", "b/1", "a/1"],
    )
    refused(
        "DescribeLogStreams rejects prefix and order together",
        "InvalidParameterException",
        "^Cannot order by LastEventTime with a logStreamNamePrefix.$",
        lambda: names(orderBy="LastEventTime", logStreamNamePrefix="a/"),
    )


def patterns():
    lines = [
        json.dumps({"level": "ERROR", "code": 404, "tags": [{"name": "x"}]}),
        json.dumps({"level": "INFO", "ms": 1.5}),
        '127.0.0.1 - alice "GET /ping HTTP/1.1" 200 12',
        '127.0.0.1 - bob "POST /invocations HTTP/1.1" 424 4000',
    ]
    put("a/1", lines)
    for pattern, expected in [
        ('{ $.level = "ERROR" && $.code >= 400 }', [0]),
        ("{ $.tags[0].name = x || $.ms < 2 }", [0, 1]),
        ("{ $.ms NOT EXISTS }", [0]),
        ("[ip, dash, user, request, status = 4*, bytes > 1000]", [3]),
        ("[..., status = 200, bytes]", [2]),
        ('"GET /ping"', [2]),
        ("?alice ?bob", [2, 3]),
        ("127.0.0.1 -alice", [3]),
        ('%HTTP/1\\.[01]" [45]\\d+%', [3]),
    ]:
        answers("the pattern %s matches" % pattern, lambda: [lines.index(each) for each in filtered(pattern)], expected)
    refused(
        "an invalid pattern is rejected",
        "InvalidParameterException",
        "^Invalid filter pattern",
        lambda: filtered("{ $.a = "),
    )


def following():
    since = now()
    tail = Tail(since)
    proven("a tail starts without events", tail.look() == [])
    at = since + 1
    put("a/1", ["one", "two"], at)
    put("b/1", ["three"], at)
    found = tail.look()
    proven("a tail returns new events of all streams", sorted(found) == ["one", "three", "two"], str(found))
    put("a/2", ["four"], at)
    put("a/2", ["five"], at + 1)
    found = tail.look()
    proven("a tail returns later events of the same millisecond", found == ["four", "five"], str(found))
    proven("a tail returns no event twice", tail.look() == [])
    many = ["line %d" % index for index in range(10_000)]
    put("b/1", many, at + 2)
    put("b/1", ["last"], at + 3)
    found = tail.look()
    proven("several pages of events are complete and ordered", found == [*many, "last"], str(len(found)))
    proven("events of two streams in one millisecond are returned once each over pages", interleaved(at + 10))
    tail = Tail(since, filterPattern="last", logStreamNamePrefix="b/")
    found = tail.look()
    proven("with a pattern and a prefix of streams", found == ["last"], str(found))
    tail = Tail(since, logStreamNames=["a/1"])
    found = tail.look()
    proven("or with the names of streams", found[:2] == ["one", "two"] and "three" not in found, str(found[:3]))


def interleaved(at):
    tail = Tail(at)
    one, other = ["a%d" % index for index in range(9000)], ["b%d" % index for index in range(9000)]
    put("a/1", one, at)
    put("b/1", other, at)
    return tail.look() == [*one, *other] and tail.look() == []


def live():
    """Tests StartLiveTail, which returns events as they are written over one connection."""
    group = logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"][0]
    refused(
        "a live tail of a missing group is an error",
        "ResourceNotFoundException",
        "^The specified log group does not exist.$",
        lambda: logs.start_live_tail(logGroupIdentifiers=[group["logGroupArn"] + "-none"]),
    )
    refused(
        "names and prefixes of streams together are rejected",
        "InvalidParameterException",
        "cannot be used together",
        lambda: logs.start_live_tail(
            logGroupIdentifiers=[group["logGroupArn"]], logStreamNames=["a/1"], logStreamNamePrefixes=["a"]
        ),
    )
    session = logs.start_live_tail(
        logGroupIdentifiers=[group["logGroupArn"]], logStreamNamePrefixes=["a/"], logEventFilterPattern="-unheard"
    )
    events = iter(session["responseStream"])
    start = next(events)["sessionStart"]
    proven(
        "a live tail starts with a description of the session",
        start["logGroupIdentifiers"] == [group["logGroupArn"]] and start["logEventFilterPattern"] == "-unheard",
        str(start),
    )
    put("a/1", ["heard", "unheard"])
    put("b/1", ["elsewhere"])
    put("a/2", ["\x1b[31mred\x00"])
    seen = []
    while len(seen) < 2:
        update = next(events)["sessionUpdate"]
        proven("no event was omitted", not update["sessionMetadata"]["sampled"])
        seen += [(event["logStreamName"], event["message"]) for event in update["sessionResults"]]
    proven(
        "a live tail returns events as they are written",
        seen == [("a/1", "heard"), ("a/2", "\x1b[31mred\x00")],
        str(seen),
    )
    session["responseStream"].close()


def reading():
    asked = {"logGroupName": GROUP, "logStreamName": "a/2", "startFromHead": True, "limit": 1}
    first = logs.get_log_events(**asked)
    seen, token = [], first["nextForwardToken"]
    while True:
        page = logs.get_log_events(nextToken=token, **asked)
        if page["nextForwardToken"] == token:
            break
        seen += [event["message"] for event in page["events"]]
        token = page["nextForwardToken"]
    proven("GetLogEvents ends where its token repeats", seen == ["four", "five"], str(seen))
    back = logs.get_log_events(nextToken=first["nextForwardToken"].replace("f/", "b/", 1), **asked)
    proven(
        "GetLogEvents reads backward with the backward token",
        [e["message"] for e in back["events"]] == ["third"],
        str(back["events"]),
    )


def asked(query, **more):
    """Returns a query's rows as dictionaries when it has ended."""
    since = int(time.time()) - 3600
    started = logs.start_query(
        **{"logGroupName": GROUP, "startTime": since, "endTime": int(time.time()) + 60, "queryString": query, **more}
    )
    while True:
        answer = logs.get_query_results(queryId=started["queryId"])
        if answer["status"] not in ("Scheduled", "Running"):
            proven("the query %s is complete" % query, answer["status"] == "Complete", answer["status"])
            return [{each["field"]: each["value"] for each in row} for row in answer["results"]], answer["statistics"]
        time.sleep(0.05)


def rows(query, **more):
    return [{name: text for name, text in row.items() if name != "@ptr"} for row in asked(query, **more)[0]]


def queries():
    """Tests CloudWatch Logs Insights with the lines of `patterns` and `following`."""
    answers(
        "fields and conditions",
        lambda: rows("fields level | filter code >= 400 and level = 'ERROR'"),
        [{"level": "ERROR"}],
    )
    answers("elements of lists", lambda: rows("filter tags.0.name = 'x' | display code"), [{"code": "404"}])
    answers(
        "parse by a glob",
        lambda: rows('parse @message "- * \\"* *" as user, verb, rest | filter verb = "POST" | display user'),
        [{"user": "bob"}],
    )
    answers(
        "parse by a regular expression, and stats",
        lambda: rows(
            'parse @message /HTTP\\/1.1" (?<status>[45]\\d+) (?<size>\\d+)/ | stats count(status) as n, sum(size) as s'
        ),
        [{"n": "1", "s": "4000"}],
    )
    answers(
        "groups, sorted and limited",
        lambda: rows(
            "filter @message like /^line [0-9]+$/ | stats count(*) as n by @logStream | sort n desc | limit 1"
        ),
        [{"@logStream": "b/1", "n": "10000"}],
    )
    found, statistics = asked("filter @message = 'last' | stats count(*) by bin(1h)")
    proven("by time", [row["count(*)"] for row in found] == ["1"] and next(iter(found[0])) == "bin(1h)", str(found))
    proven(
        "the result has the numbers of scanned records",
        statistics["recordsScanned"] > 28_000 and statistics["recordsMatched"] == 1,
        str(statistics),
    )
    found, _ = asked("filter @message like 'unheard' | limit 1")
    proven(
        "without fields the result has time, message and pointer",
        list(found[0]) == ["@timestamp", "@message", "@ptr"],
        str(found),
    )
    answers("a limit", lambda: len(rows("fields @message", limit=7)), 7)
    try:
        asked("filter level = ")
        proven("an invalid query is rejected", False)
    except logs.exceptions.MalformedQueryException as error:
        place = error.response["queryCompileError"]["location"]["startCharOffset"]
        proven("the error of an invalid query has the position", place == 15, str(error.response))
    refused(
        "an unsupported query language is rejected",
        "InvalidParameterException",
        "queryLanguage",
        lambda: asked("SELECT 1", queryLanguage="SQL"),
    )
    refused(
        "a missing group is an error",
        "ResourceNotFoundException",
        "group does not exist",
        lambda: asked("limit 1", logGroupName="/no"),
    )
    listed = logs.describe_queries(logGroupName=GROUP, status="Complete")["queries"]
    proven(
        "DescribeQueries lists the newest queries first",
        listed[0]["queryString"] == "fields @message" and len(listed) == 8,
        str(len(listed)),
    )
    refused(
        "stopping an ended query is an error",
        "InvalidParameterException",
        "already ended",
        lambda: logs.stop_query(queryId=listed[0]["queryId"]),
    )
    refused(
        "a missing query is an error",
        "ResourceNotFoundException",
        "no query",
        lambda: logs.get_query_results(queryId="none"),
    )


def metric_filters():
    """Creates metrics from log lines and reads them with CloudWatch."""
    tested = logs.test_metric_filter(filterPattern="[ip, ..., size > 10]", logEventMessages=["::1 GET 5", "::1 GET 50"])
    found = [(each["eventNumber"], each["extractedValues"]) for each in tested["matches"]]
    proven("TestMetricFilter matches messages", found == [(2, {"$ip": "::1", "$size": "50"})], str(found))
    transformation = {"metricName": "Took", "metricNamespace": "Conformance", "metricValue": "$.took"}
    logs.put_metric_filter(
        logGroupName=GROUP,
        filterName="took",
        filterPattern="{ $.took > 0 }",
        metricTransformations=[{**transformation, "dimensions": {"Path": "$.path"}, "unit": "Milliseconds"}],
    )
    (listed,) = logs.describe_metric_filters(logGroupName=GROUP)["metricFilters"]
    proven(
        "DescribeMetricFilters returns the filter",
        listed["metricTransformations"][0]["metricValue"] == "$.took",
        str(listed),
    )
    put("a/1", [json.dumps({"took": took, "path": "/x"}) for took in (10, 20, 30)])
    cloudwatch = boto3.client("cloudwatch")
    (series,) = cloudwatch.get_metric_statistics(
        Namespace="Conformance",
        MetricName="Took",
        Dimensions=[{"Name": "Path", "Value": "/x"}],
        StartTime=time.time() - 600,
        EndTime=time.time() + 60,
        Period=3600,
        Statistics=["Sum", "SampleCount"],
    )["Datapoints"]
    told = (series["Sum"], series["SampleCount"], series["Unit"])
    proven("the filter's metric has the written values", told == (60, 3, "Milliseconds"), str(series))
    logs.delete_metric_filter(logGroupName=GROUP, filterName="took")
    answers(
        "a deleted filter is not listed", lambda: logs.describe_metric_filters(logGroupName=GROUP)["metricFilters"], []
    )
    refused(
        "a subscription filter is rejected by name",
        "UnknownOperationException",
        "PutSubscriptionFilter is not implemented",
        lambda: logs.put_subscription_filter(
            logGroupName=GROUP, filterName="f", filterPattern="", destinationArn="arn:aws:lambda:us-east-1:0:function:f"
        ),
    )


def bounds():
    old = put("a/1", ["old"], now() - 15 * 86_400_000)
    proven(
        "an event that is too old is reported", old["rejectedLogEventsInfo"] == {"tooOldLogEventEndIndex": 1}, str(old)
    )
    new = put("a/1", ["new"], now() + 3 * 3_600_000)
    proven(
        "an event that is too new is reported",
        new["rejectedLogEventsInfo"] == {"tooNewLogEventStartIndex": 0},
        str(new),
    )

    def retention():
        (group,) = logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]
        return group.get("retentionInDays")

    put("b/1", ["yesterday's"], now() - 2 * 86_400_000)
    logs.put_retention_policy(logGroupName=GROUP, retentionInDays=1)
    answers("DescribeLogGroups returns the retention", retention, 1)
    answers("older events are not returned", lambda: filtered("yesterday's"), [])
    refused(
        "an invalid number of days is rejected",
        "InvalidParameterException",
        r"'retentionInDays' failed to satisfy constraint: Member must satisfy enum value set: \[1, 3, 5",
        lambda: logs.put_retention_policy(logGroupName=GROUP, retentionInDays=2),
    )
    logs.delete_retention_policy(logGroupName=GROUP)
    answers("the retention can be deleted", retention, None)
    logs.delete_log_group(logGroupName=GROUP)
    refused(
        "a deleted group is an error",
        "ResourceNotFoundException",
        "^The specified log group does not exist.$",
        lambda: filtered(""),
    )


streams()
patterns()
following()
reading()
live()
queries()
metric_filters()
bounds()
finish()
