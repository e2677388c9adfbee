# SPDX-License-Identifier: Apache-2.0
"""Tests of the messages that the Python client makes, and of what it makes of answers."""

import unittest
from datetime import datetime, timedelta, timezone

import installed  # noqa: F401
import numpy as np

from sluice_client import Boost, Query, QueryError, codes, components, merged
from sluice_client import sluice_pb2 as pb
from sluice_client.answer import answer_of
from sluice_client.messages import item, key_bytes, keys_bytes, value_of
from sluice_client.positions import reached


class Items(unittest.TestCase):
    def test_vectors_keep_their_numbers(self):
        for numbers, kind, due in (([3, 1], pb.Vector.F32, "<f4"), (np.array([0.1, 2]), pb.Vector.F32, "<f4"),
                                   (np.array([[1], [2]], np.float16), pb.Vector.F16, "<f2"),
                                   (np.arange(8, dtype=">f4")[::2], pb.Vector.F32, "<f4")):
            made = item({"films": numbers}).parts["films"].vector
            self.assertEqual(made.type, kind)
            self.assertEqual(made.data, np.asarray(numbers).astype(due).tobytes())

    def test_numbers_that_are_not_finite_are_refused(self):
        for number in (float("nan"), float("inf"), 1e39):
            with self.assertRaises(ValueError), np.errstate(over="ignore"):
                item({"films": [1, number]})

    def test_parts(self):
        made = item({"a": codes([0, 255]), "b": components([1, 2], [3]), "c": np.array([1.5])})
        self.assertEqual(made.parts["a"].codes, b"\x00\xff")
        self.assertEqual(np.frombuffer(made.parts["b"].item_gate.data, "<f4").tolist(), [3])
        self.assertFalse(made.parts["c"].HasField("components"))
        with self.assertRaises(ValueError):
            codes([256])

    def test_values(self):
        for plain, kind in ((True, "boolean"), (3, "integer"), (3.0, "number"), ("de", "text"), (None, None),
                            (np.int64(3), "integer"), (np.float32(0.5), "number"), (np.bool_(True), "boolean"),
                            (["a"], "list"), (np.array([1, 2]), "list")):
            self.assertEqual(value_of(plain).WhichOneof("kind"), kind, plain)
        mixed = value_of([True, 1, 2.5, "a", np.int32(7)]).list
        self.assertEqual((list(mixed.booleans), list(mixed.integers), list(mixed.numbers), list(mixed.texts)),
                         ([True], [1, 7], [2.5], ["a"]))
        with self.assertRaises(ValueError):
            value_of(b"bytes")

    def test_values_that_the_daemon_would_refuse(self):
        for wrong in (float("nan"), np.float32("inf"), [1.0, float("nan")], "x" * 257, "ä" * 129, "a\0b", ["a\0"],
                      np.timedelta64(5, "s"), np.datetime64("NaT"), datetime(2026, 1, 1)):
            with self.assertRaises(ValueError, msg=repr(wrong)):
                value_of(wrong)
        self.assertEqual(value_of("x" * 256).text, "x" * 256)

    def test_times(self):
        due = 1795305600123
        for time in (datetime(2026, 11, 22, 0, 0, 0, 123000, tzinfo=timezone.utc),
                     datetime(2026, 11, 22, 2, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2))),
                     np.datetime64("2026-11-22T00:00:00.123", "ns"), np.datetime64("2026-11-22T00:00:00.123", "ms"),
                     np.array(["2026-11-22T00:00:00.123"], "datetime64[us]")[0]):
            self.assertEqual(value_of(time).integer, due, repr(time))
        self.assertEqual(value_of(np.datetime64("2026-11-22")).integer, due - 123)
        self.assertEqual(list(value_of(np.array(["1970-01-02"], "datetime64[D]")).list.integers), [86400000])

    def test_keys(self):
        self.assertEqual(key_bytes("ä"), "ä".encode())
        for wrong in ("", b"", "x" * 257, 17, ["a"]):  # bytes(17) would be 17 zeros
            with self.assertRaises(ValueError):
                key_bytes(wrong)
        self.assertEqual(keys_bytes("exclude", ("a", b"b")), [b"a", b"b"])
        for wrong in ("k0.0", b"k0.0"):
            with self.assertRaisesRegex(ValueError, "exclude is a list of keys, not one key"):
                Query("films", 2, [1, 0], exclude=wrong).message("q", 0)

    def test_an_item_with_nothing_is_refused(self):
        with self.assertRaisesRegex(ValueError, "delete"):
            item({})
        self.assertEqual(len(item({}, {"year": None}).attributes), 1)


class Queries(unittest.TestCase):
    def test_a_query_can_be_sent_again(self):
        query = Query("films", 2, [1, 0], exclude=(key for key in ("a", b"b")), explain=iter(["c"]))
        for _ in range(2):
            message = query.message("q", 0)
            self.assertEqual((list(message.exclude), list(message.explain)), ([b"a", b"b"], [b"c"]))

    def test_every_field_arrives(self):
        query = Query("films", 2, [1, 0], method="brute_force", filter="year > $1 and tags has $2",
                      parameters=[1990, ["a"]], exclude=["ran", b"\xff"], exclude_seen_by="7", at_least={1: 5},
                      at_least_seen={0: 9}, no_wait=True, user_id=0)
        made = query.message("id", 1700)
        self.assertEqual((made.id, made.space, made.k, made.method, made.deadline_unix_ms, made.no_wait),
                         ("id", "films", 2, "brute_force", 1700, True))
        self.assertEqual(list(made.exclude), [b"ran", b"\xff"])
        self.assertEqual([(p.partition, p.next) for p in (*made.at_least, *made.at_least_seen)], [(1, 5), (0, 9)])
        self.assertEqual((made.parameters[0].integer, list(made.parameters[1].list.texts)), (1990, ["a"]))
        self.assertEqual((made.exclude_seen_by, made.WhichOneof("user")), (b"7", "user_id"))
        self.assertFalse(made.HasField("components"))

    def test_more_like_an_item_and_why(self):
        made = Query("films", 2, like="alien", explain=["heat", b"\xff"]).message("id", 1700)
        self.assertEqual((made.like, list(made.explain)), (b"alien", [b"heat", b"\xff"]))
        self.assertFalse(made.HasField("vector"))

    def test_at_most_n_of_a_value(self):
        made = Query("films", 2, [1, 0], max_per=("year", 3)).message("id", 1700)
        self.assertEqual((made.max_per.attribute, made.max_per.n), ("year", 3))
        self.assertFalse(Query("films", 2, [1, 0]).message("id", 1700).HasField("max_per"))
        with self.assertRaisesRegex(ValueError, "at least 1"):
            Query("films", 2, [1, 0], max_per=("year", 0)).message("id", 1700)

    def test_hits_that_differ(self):
        made = Query("films", 2, [1, 0], mmr=(0.5, 30)).message("id", 1700)
        self.assertEqual((made.mmr.diversity, made.mmr.candidates), (0.5, 30))
        made = Query("films", 2, [1, 0], mmr=[0.5, 30]).message("id", 1700)
        self.assertEqual((made.mmr.diversity, made.mmr.candidates), (0.5, 30))
        made = Query("films", 2, [1, 0], mmr=1).message("id", 1700)
        self.assertEqual((made.mmr.diversity, made.mmr.candidates), (1, 0))
        self.assertFalse(Query("films", 2, [1, 0]).message("id", 1700).HasField("mmr"))
        for wrong in (0, -0.1, 1.1, float("nan"), (2, 30)):
            with self.assertRaisesRegex(ValueError, "the diversity of mmr is above 0, and at most 1"):
                Query("films", 2, [1, 0], mmr=wrong).message("id", 1700)

    def test_hits_with_a_least_score(self):
        self.assertEqual(Query("films", 2, [1, 0], min_score=0).message("id", 1700).min_score, 0)
        self.assertTrue(Query("films", 2, [1, 0], min_score=0).message("id", 1700).HasField("min_score"))
        self.assertFalse(Query("films", 2, [1, 0]).message("id", 1700).HasField("min_score"))
        for wrong in (float("nan"), float("inf"), -1e39):
            with self.assertRaisesRegex(ValueError, "min_score is a number of 32 bits, not"):
                Query("films", 2, [1, 0], min_score=wrong).message("id", 1700)

    def test_attributes_that_hits_show(self):
        made = Query("films", 2, [1, 0], attributes=("title", "year")).message("id", 1700)
        self.assertEqual(list(made.attributes), ["title", "year"])
        self.assertEqual(list(Query("films", 2, [1, 0]).message("id", 1700).attributes), [])
        with self.assertRaisesRegex(ValueError, "attributes is a list of names, not one name: \\['title'\\]"):
            Query("films", 2, [1, 0], attributes="title").message("id", 1700)

    def test_boosts(self):
        boosts = [Boost(weight=0.2, attribute="popularity"), Boost(-1, "published", timedelta(days=7)),
                  Boost(1e9, "published", half_life=1.5),
                  Boost(weight=0.3, filter="section = $1 or price < $2", parameters=["graphics", 3])]
        made = Query("films", 2, [1, 0], boosts=boosts).message("id", 1700)
        self.assertEqual([(boost.weight, boost.attribute, boost.half_life_ms, boost.filter) for boost in made.boosts],
                         [(0.2, "popularity", 0, ""), (-1, "published", 604800000, ""), (1e9, "published", 1500, ""),
                          (0.3, "", 0, "section = $1 or price < $2")])
        self.assertEqual([value.WhichOneof("kind") for value in made.boosts[3].parameters], ["text", "integer"])
        self.assertFalse(made.HasField("now_unix_ms"))

    def test_boosts_at_a_time(self):
        for time, due in ((datetime(2026, 9, 21, 14, 13, 20, 250999, timezone.utc), 1790000000250),
                          (datetime(2026, 9, 21, 16, 13, 20, tzinfo=timezone(timedelta(hours=2))), 1790000000000),
                          (datetime(1970, 1, 1, tzinfo=timezone.utc), 0)):
            made = Query("films", 2, [1, 0], boosts=[Boost(1, "year")], now=time).message("id", 1700)
            self.assertTrue(made.HasField("now_unix_ms"))
            self.assertEqual(made.now_unix_ms, due)
        for time, words in ((datetime(2026, 9, 21), "no time zone"),
                            (datetime(1969, 12, 31, tzinfo=timezone.utc), "before 1970")):
            with self.assertRaisesRegex(ValueError, words):
                Query("films", 2, [1, 0], boosts=[Boost(1, "year")], now=time).message("id", 1700)
        with self.assertRaisesRegex(ValueError, "now is for boosts"):
            Query("films", 2, [1, 0], now=datetime.now(timezone.utc)).message("id", 1700)

    def test_wrong_boosts_are_refused(self):
        for boost, words in ((Boost(1), "an attribute or a filter"), (Boost(1, "a", filter="b"), "and not both"),
                             (Boost(float("nan"), "a"), "not nan"), (Boost(float("inf"), "a"), "not inf"),
                             (Boost(-1.1e9, "a"), "from -1e[+]09 to 1e[+]09"),
                             (Boost(1, "a", half_life=0), "at least a millisecond"),
                             (Boost(1, "a", timedelta(days=-1)), "at least a millisecond"),
                             (Boost(1, filter="b", half_life=3), "a filter has no age"),
                             (Boost(1, "a", parameters=[1]), "parameters are for a filter")):
            with self.assertRaisesRegex(ValueError, words):
                Query("films", 2, [1, 0], boosts=[boost]).message("id", 1700)
        with self.assertRaisesRegex(ValueError, "9 boosts, at most 8"):
            Query("films", 2, [1, 0], boosts=[Boost(1, "a")] * 9).message("id", 1700)

    def test_no_field_of_the_schema_is_forgotten(self):
        fields = {field.name.removesuffix("_unix_ms") for field in pb.Query.DESCRIPTOR.fields}
        self.assertEqual(fields, set(Query.__dataclass_fields__) | {"id", "deadline", "reply_topic", "likes"})
        fields = {field.name.removesuffix("_ms") for field in pb.Boost.DESCRIPTOR.fields}
        self.assertEqual(fields, set(Boost.__dataclass_fields__))


class Answers(unittest.TestCase):
    def test_hits_and_receipt(self):
        message = pb.Answer(id="q", hits=[pb.Hit(key=b"a\xff", score=3)], epoch=5,
                            receipt=pb.Receipt(exact=True, bound=1), watermark=[pb.Position(partition=2, next=7)])
        answer = answer_of(message)
        self.assertEqual((answer.hits, answer.hits[0].text), ([(b"a\xff", 3.0, None, None, {})], "a\\xff"))
        self.assertEqual((answer.exact, answer.bound, answer.epoch, answer.watermark), (True, 1.0, 5, {2: 7}))
        self.assertIsNone(answer.time_unix_ms)
        self.assertEqual(answer.shards, {})
        self.assertIsNone(answer_of(pb.Answer()).bound)

    def test_hits_have_the_values_of_max_per(self):
        values = [pb.Value(text="de"), pb.Value(integer=7), pb.Value(boolean=False), None]
        answer = answer_of(pb.Answer(hits=[pb.Hit(key=b"a", value=value) for value in values]))
        self.assertEqual([hit.value for hit in answer.hits], ["de", 7, False, None])

    def test_hits_have_the_attributes_that_were_asked_for(self):
        shown = {"title": "Alien", "year": 1979, "price": 9.0, "adult": False, "tags": ["a", "b"], "none": []}
        made = pb.Hit(key=b"a")
        for name, plain in shown.items():
            made.attributes[name].CopyFrom(value_of(plain))
        answer = answer_of(pb.Answer(hits=[made, pb.Hit(key=b"b")]))
        self.assertEqual([hit.attributes for hit in answer.hits], [shown, {}])
        self.assertEqual(len(set(answer.hits + answer.hits)), 2)
        self.assertIsInstance(answer.hits[0].attributes["price"], float)

    def test_hits_have_the_similarities_of_boosts(self):
        answer = answer_of(pb.Answer(hits=[pb.Hit(key=b"a", score=3, similarity=0), pb.Hit(key=b"b", score=2)],
                                     now_unix_ms=1790000000250))
        self.assertEqual([hit.similarity for hit in answer.hits], [0.0, None])
        self.assertEqual(answer.now, datetime(2026, 9, 21, 14, 13, 20, 250000, timezone.utc))
        again = Query("films", 2, [1, 0], boosts=[Boost(1, "year")], now=answer.now).message("id", 1700)
        self.assertEqual(again.now_unix_ms, 1790000000250)
        self.assertIsNone(answer_of(pb.Answer()).now)

    def test_a_part_of_the_shards(self):
        made = Query("films", 2, vector=[1, 2], allow_partial=True).message("id", 1700)
        self.assertTrue(made.allow_partial)
        answer = answer_of(pb.Answer(parts=pb.Parts(answered=3, of=4), generation=2, model="ab"))
        self.assertEqual((answer.shards, answer.generation, answer.model), ({"answered": 3, "of": 4}, 2, "ab"))

    def test_items_to_be_like(self):
        def likes(like):
            made = Query("films", 2, like=like).message("id", 1700)
            self.assertEqual(made.like, b"")
            return [(like.key, like.weight if like.HasField("weight") else None) for like in made.likes]
        self.assertEqual(likes(["alien", b"\xff"]), [(b"alien", None), (b"\xff", None)])
        self.assertEqual(likes({"alien": 2, "heat": -0.5}), [(b"alien", 2.0), (b"heat", -0.5)])
        once = Query("films", 2, like=(key for key in ("a", "b")))
        for _ in range(2):
            self.assertEqual([like.key for like in once.message("id", 1700).likes], [b"a", b"b"])
        for wrong in ([], {}):
            with self.assertRaisesRegex(ValueError, "like"):
                likes(wrong)

    def test_other_queries_go_first(self):
        self.assertTrue(Query("films", 2, vector=[1, 2], background=True).message("id", 1700).background)
        self.assertFalse(Query("films", 2, vector=[1, 2]).message("id", 1700).background)

    def test_errors_have_their_code(self):
        for code, name, can_retry in ((1, "BAD_QUERY", False), (5, "NOT_SEEN", True), (6, "UNAVAILABLE", True),
                                      (8, "PARTIAL", True),
                                      (77, "77", False)):
            with self.assertRaises(QueryError) as caught:
                answer_of(pb.Answer(error=pb.Error(code=code, message="why")))
            self.assertEqual((caught.exception.code, caught.exception.can_retry), (name, can_retry))
            self.assertEqual(str(caught.exception), f"{name}: why")


class PositionsTest(unittest.TestCase):
    def test_merged_positions_include_all(self):
        self.assertEqual(merged({0: 5, 1: 1}, {1: 3}, {}), {0: 5, 1: 3})

    def test_reached(self):
        self.assertTrue(reached({0: 5, 1: 3}, {1: 3}))
        self.assertFalse(reached({0: 5}, {1: 1}))
        self.assertTrue(reached({}, {}))


if __name__ == "__main__":
    unittest.main()
