"""Real boto3 against the gateway at argv[1]: data stored with an object in addition to its bytes: metadata, tags and
checksums.
"""

import base64
import binascii
import hashlib

from checks import MIB, check, client, got, put, refused, run, s3


def head(key, **more):
    return s3.head_object(Bucket="bkt", Key=key, **more)


def sums(key):
    reply = head(key, ChecksumMode="ENABLED")
    return {name: value for name, value in reply.items() if name.startswith("Checksum")}


def tags_of(key):
    return {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(Bucket="bkt", Key=key)["TagSet"]}


def sha256(body):
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def crc32(body):
    return base64.b64encode(binascii.crc32(body).to_bytes(4, "big")).decode()


def upload(key, bodies, done=None, part=None, **more):
    """Uploads the bodies as parts; `part` returns the arguments of a part, `done` those of the completion."""
    to = {
        "Bucket": "bkt",
        "Key": key,
        "UploadId": s3.create_multipart_upload(Bucket="bkt", Key=key, **more)["UploadId"],
    }
    parts = []
    for number, body in enumerate(bodies, 1):
        sent = s3.upload_part(**to, PartNumber=number, Body=body, **(part(body) if part else {}))
        kept = {name: value for name, value in sent.items() if name in ("ETag", "ChecksumCRC32", "ChecksumSHA256")}
        parts.append({"PartNumber": number, **kept})
    return s3.complete_multipart_upload(**to, MultipartUpload={"Parts": parts}, **(done(parts) if done else {}))


@check
def empty_metadata_is_kept():
    s3.create_bucket(Bucket="bkt")
    put("empty", Metadata={"a": "", "b": "c"})
    assert head("empty")["Metadata"] == {"a": "", "b": "c"}, head("empty")["Metadata"]
    s3.copy_object(Bucket="bkt", Key="copied", CopySource="bkt/empty")
    assert head("copied")["Metadata"] == {"a": "", "b": "c"}
    s3.copy_object(Bucket="bkt", Key="copied", CopySource="bkt/empty", MetadataDirective="REPLACE", Metadata={"d": ""})
    assert head("copied")["Metadata"] == {"d": ""}
    upload("joined", [b"x"], Metadata={"e": ""})
    assert head("joined")["Metadata"] == {"e": ""}


@check
def encoded_words_come_back_as_they_were():
    words = {"q": "=?UTF-8?Q?=C3=84M=C3=84Z=C3=95=C3=91_S3?=", "b": "=?UTF-8?B?w4RNw4Q=?="}
    put("words", Metadata=words)
    assert head("words")["Metadata"] == words and s3.get_object(Bucket="bkt", Key="words")["Metadata"] == words


@check
def metadata_names_are_lower_case_and_values_trimmed():
    put("names", Metadata={"Some-Name": "  a  b  ", "under_score": "1"})
    assert head("names")["Metadata"] == {"some-name": "a  b", "under_score": "1"}, head("names")["Metadata"]


@check
def metadata_counts_names_and_values():
    put("full", Metadata={"a" * 24: "v" * 1000, "b" * 24: "v" * 1000})
    refused("MetadataTooLarge", lambda: put("full", Metadata={"a" * 25: "v" * 1000, "b" * 24: "v" * 1000}), 400)


@check
def a_type_that_is_not_given_is_binary():
    put("untyped")
    assert head("untyped")["ContentType"] == "binary/octet-stream"
    upload("untyped", [b"x"])
    assert head("untyped")["ContentType"] == "binary/octet-stream"
    put("untyped", ContentType="")
    assert head("untyped")["ContentType"] == "binary/octet-stream", head("untyped")["ContentType"]


@check
def tags_are_counted_and_decoded():
    put("tags", Tagging="a=1&name%20with%20spaces=caf%C3%A9&plus=a%2Bb&sp=a+b&none=")
    want = {"a": "1", "name with spaces": "café", "plus": "a+b", "sp": "a b", "none": ""}
    assert tags_of("tags") == want, tags_of("tags")
    assert s3.get_object(Bucket="bkt", Key="tags")["TagCount"] == 5
    assert "TagCount" not in s3.get_object(Bucket="bkt", Key="empty") and tags_of("empty") == {}
    refused("NoSuchKey", lambda: tags_of("none"), 404)


@check
def tags_that_s3_refuses():
    sentence = "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates."
    for text in ["a=&a=", "=", "=v", "a=%zz", "a=%ff"]:
        for call in [
            lambda: put("refused", Tagging=text),
            lambda: upload("refused", [b"x"], Tagging=text),
            lambda: s3.copy_object(
                Bucket="bkt", Key="refused", CopySource="bkt/empty", Tagging=text, TaggingDirective="REPLACE"
            ),
        ]:
            error = refused("InvalidArgument", call, 400)["Error"]
            assert error["Message"] == sentence and error["ArgumentName"] == "x-amz-tagging", error
    assert (
        refused("InvalidTag", lambda: put("refused", Tagging="a%3C=1"), 400)["Error"]["Message"]
        == "The TagKey you have provided is invalid"
    )
    assert (
        refused("InvalidTag", lambda: put("refused", Tagging="a=%22"), 400)["Error"]["Message"]
        == "The TagValue you have provided is invalid"
    )
    refused("InvalidTag", lambda: put("refused", Tagging="a=" + "v" * 257), 400)
    error = refused("InvalidTag", lambda: put("refused", Tagging="aws:a=1"), 400)["Error"]
    assert error["Message"] == "Your TagKey cannot be prefixed with aws:", error
    refused("NoSuchKey", lambda: got("refused"))


@check
def tags_are_put_and_deleted():
    put("retagged", b"kept", Tagging="a=1", Metadata={"m": "n"})
    before = head("retagged")
    tag = lambda *pairs: s3.put_object_tagging(
        Bucket="bkt", Key="retagged", Tagging={"TagSet": [{"Key": k, "Value": v} for k, v in pairs]}
    )
    tag(("b", "2"), ("c é", "a/b"))
    assert tags_of("retagged") == {"b": "2", "c é": "a/b"}, tags_of("retagged")
    after = head("retagged")
    assert (
        after["ETag"] == before["ETag"]
        and after["LastModified"] == before["LastModified"]
        and after["Metadata"] == {"m": "n"}
    )
    assert got("retagged") == b"kept" and s3.get_object(Bucket="bkt", Key="retagged")["TagCount"] == 2
    assert (
        refused("InvalidTag", lambda: tag(("a", "1"), ("a", "2")), 400)["Error"]["Message"]
        == "Cannot provide multiple Tags with the same key"
    )
    refused("BadRequest", lambda: tag(*[("t%d" % n, "") for n in range(11)]), 400)
    refused("InvalidTag", lambda: tag(("k" * 129, "")), 400)
    assert tags_of("retagged") == {"b": "2", "c é": "a/b"}
    tag()
    assert tags_of("retagged") == {}
    tag(("b", ""))
    assert s3.delete_object_tagging(Bucket="bkt", Key="retagged")["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert tags_of("retagged") == {} and "TagCount" not in s3.get_object(Bucket="bkt", Key="retagged")
    refused("NoSuchKey", lambda: s3.put_object_tagging(Bucket="bkt", Key="none", Tagging={"TagSet": []}), 404)
    refused("NoSuchKey", lambda: s3.delete_object_tagging(Bucket="bkt", Key="none"), 404)


@check
def a_copy_s_checksum_is_the_object_s():
    put("src", b"hello", ChecksumAlgorithm="SHA256")
    s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/src")
    assert sums("dst")["ChecksumSHA256"] == sha256(b"hello"), sums("dst")
    reply = s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/src", ChecksumAlgorithm="CRC32")["CopyObjectResult"]
    assert reply["ChecksumCRC32"] == "NhCmhg==" and sums("dst") == {
        "ChecksumCRC32": "NhCmhg==",
        "ChecksumType": "FULL_OBJECT",
    }, sums("dst")


@check
def checksums_are_said_when_asked_for():
    put("sum", b"hello", ChecksumAlgorithm="SHA256")
    assert sums("sum") == {"ChecksumSHA256": sha256(b"hello"), "ChecksumType": "FULL_OBJECT"}
    quiet = client(response_checksum_validation="when_required")
    assert "ChecksumSHA256" not in quiet.head_object(Bucket="bkt", Key="sum")
    assert "ChecksumSHA256" not in s3.get_object(Bucket="bkt", Key="sum", Range="bytes=0-1")
    (listed,) = s3.list_objects_v2(Bucket="bkt", Prefix="sum")["Contents"]
    assert listed["ChecksumAlgorithm"] == ["SHA256"] and listed["ChecksumType"] == "FULL_OBJECT", listed


@check
def a_composite_checksum_is_of_the_parts_checksums():
    bodies = [b"a" * 5 * MIB, b"b" * 100]
    done = upload("composite", bodies, ChecksumAlgorithm="SHA256", part=lambda body: {"ChecksumAlgorithm": "SHA256"})
    want = sha256(b"".join(hashlib.sha256(body).digest() for body in bodies)) + "-2"
    assert done["ChecksumSHA256"] == want and done["ChecksumType"] == "COMPOSITE", done
    assert sums("composite") == {"ChecksumSHA256": want, "ChecksumType": "COMPOSITE"}
    assert got("composite") == b"".join(bodies)
    (listed,) = s3.list_objects_v2(Bucket="bkt", Prefix="composite")["Contents"]
    assert listed["ChecksumAlgorithm"] == ["SHA256"] and listed["ChecksumType"] == "COMPOSITE", listed


@check
def a_full_object_checksum_is_of_all_bytes():
    bodies = [b"a" * 5 * MIB, b"b" * 100]
    whole = crc32(b"".join(bodies))
    given = {
        "ChecksumAlgorithm": "CRC32",
        "ChecksumType": "FULL_OBJECT",
        "part": lambda body: {"ChecksumCRC32": crc32(body)},
    }
    done = upload("whole", bodies, done=lambda _: {"ChecksumCRC32": whole, "ChecksumType": "FULL_OBJECT"}, **given)
    assert done["ChecksumCRC32"] == whole and sums("whole") == {"ChecksumCRC32": whole, "ChecksumType": "FULL_OBJECT"}
    refused("BadDigest", lambda: upload("broken", bodies, done=lambda _: {"ChecksumCRC32": crc32(b"")}, **given), 400)
    refused("NoSuchKey", lambda: got("broken"))


@check
def a_part_s_checksum_is_held_to_at_completion():
    given = {"ChecksumAlgorithm": "SHA256", "part": lambda body: {"ChecksumAlgorithm": "SHA256"}}

    def wrong(parts):
        parts[0]["ChecksumSHA256"] = sha256(b"other")
        return {}

    refused("InvalidPart", lambda: upload("wrong", [b"x"], done=wrong, **given), 400)

    def missing(parts):
        del parts[0]["ChecksumSHA256"]
        return {}

    error = refused("InvalidRequest", lambda: upload("wrong", [b"x"], done=missing, **given), 400)["Error"]
    assert (
        error["Message"]
        == "The upload was created using a sha256 checksum. The complete request must include the checksum for each part."
        " It was missing for part 1 in the request."
    ), error


@check
def checksums_of_long_bodies_are_checked_and_kept():
    body = b"t" * 3 * MIB
    for name, value in [("CRC32", crc32(body)), ("SHA256", sha256(body))]:
        put("long", body, ChecksumAlgorithm=name)
        assert sums("long") == {"Checksum" + name: value, "ChecksumType": "FULL_OBJECT"}
    refused("BadDigest", lambda: put("long", b"other", ChecksumSHA256=sha256(body)), 400)


run()
