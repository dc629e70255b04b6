"""Texts in scripts that have no spaces between words: accuracy with few labels, by how words are told apart.

    python benchmarks/text_scripts.py --out docs/results/eyes/scripts.csv

Six intents in Chinese, Japanese and Thai, eight phrasings each with a place or a thing in it, written for this purpose.
A ridge head learns from 3 or 10 sentences of each intent, drawn from five of the phrasings, and is tested on all
sentences of the other three, which it has never seen. English, in the same way, shows that nothing changes there.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuacl.experiments.heads import fit_ridge
from accuacl.labeling.project.loader import count_words, word_vectors

COLUMNS, LABELS = 4096, (3, 10)
WAYS = ("spaces", "scripts")
FILL = {
    "chinese": "北京 上海 广州 成都 西安 杭州",
    "japanese": "東京 大阪 京都 札幌 福岡 名古屋",
    "thai": "กรุงเทพ เชียงใหม่ ภูเก็ต ขอนแก่น พัทยา อยุธยา",
    "english": "Berlin London Paris Rome Vienna Madrid",
}
SENTENCES = {
    "chinese": {
        "weather": "{}今天天气怎么样|明天{}会下雨吗|告诉我{}的天气预报|{}的气温是多少度|{}周末天气好不好|现在{}下雨了吗|查一下{}的天气|{}明天最高气温多少",
        "flight": "帮我订一张去{}的机票|我想坐飞机去{}|查询飞往{}的航班|{}的航班几点起飞|去{}的机票多少钱|有没有便宜的{}机票|预订明天飞{}的航班|最早一班去{}的飞机是几点",
        "hotel": "在{}找一家酒店|我要在{}预订酒店房间|{}有什么便宜的旅馆|帮我订{}的宾馆|{}市中心的酒店多少钱|{}哪家酒店最好|给我推荐{}的旅馆|我想在{}住两个晚上的酒店",
        "food": "{}有什么好吃的餐厅|推荐一家{}的饭店|{}附近哪里可以吃饭|我想在{}吃晚饭|{}最有名的菜是什么|帮我在{}的餐厅订位|{}的中餐馆在哪里|找一家{}评价好的餐厅",
        "route": "从这里到{}怎么走|去{}的路线|开车到{}要多久|{}离这里有多远|告诉我去{}的路|导航到{}|去{}坐什么车|到{}的高速公路堵车吗",
        "time": "{}现在几点了|{}的时间是多少|告诉我{}当地时间|{}和这里有几个小时的时差|现在{}是白天吗|{}是哪个时区|{}现在是什么时间|查一下{}的当地时间",
    },
    "japanese": {
        "weather": "{}の天気はどうですか|明日{}は雨が降りますか|{}の天気予報を教えて|{}の気温は何度ですか|週末の{}の天気は良いですか|今{}で雨が降っていますか|{}の天気を調べて|明日の{}の最高気温は",
        "flight": "{}行きの航空券を予約して|飛行機で{}に行きたい|{}への便を調べて|{}行きの便は何時に出発しますか|{}までの航空券はいくらですか|安い{}行きの航空券はありますか|明日の{}便を予約したい|{}行きの一番早い飛行機は何時",
        "hotel": "{}でホテルを探して|{}のホテルの部屋を予約したい|{}の安い宿はありますか|{}の旅館を予約して|{}の中心部のホテルはいくらですか|{}で一番良いホテルはどこ|{}の旅館をおすすめして|{}のホテルに二泊したい",
        "food": "{}の美味しいレストランはどこ|{}の食堂をおすすめして|{}の近くで食事ができる店は|{}で夕食を食べたい|{}の有名な料理は何ですか|{}のレストランの席を予約して|{}の和食の店はどこですか|評判の良い{}のレストランを探して",
        "route": "ここから{}までの行き方|{}への道順を教えて|車で{}までどのくらいかかりますか|{}はここからどのくらい遠いですか|{}に行く道を教えて|{}まで案内して|{}へは何に乗ればいいですか|{}への道路は渋滞していますか",
        "time": "{}は今何時ですか|{}の時刻を教えて|{}の現地時間は|{}との時差は何時間ですか|{}は今昼間ですか|{}はどの時間帯ですか|今の{}の時間を教えて|{}の現在時刻を調べて",
    },
    "thai": {
        "weather": "อากาศที่{}วันนี้เป็นอย่างไร|พรุ่งนี้{}ฝนจะตกไหม|บอกพยากรณ์อากาศของ{}|อุณหภูมิที่{}กี่องศา|สุดสัปดาห์นี้{}อากาศดีไหม|ตอนนี้ที่{}ฝนตกหรือเปล่า|ตรวจสอบสภาพอากาศ{}|อุณหภูมิสูงสุดพรุ่งนี้ที่{}",
        "flight": "จองตั๋วเครื่องบินไป{}|ฉันอยากบินไป{}|ค้นหาเที่ยวบินไป{}|เที่ยวบินไป{}ออกกี่โมง|ตั๋วเครื่องบินไป{}ราคาเท่าไร|มีตั๋วถูกไป{}ไหม|จองเที่ยวบินพรุ่งนี้ไป{}|เครื่องบินเที่ยวแรกไป{}กี่โมง",
        "hotel": "หาโรงแรมใน{}|อยากจองห้องพักโรงแรมที่{}|ที่พักราคาถูกใน{}มีไหม|จองที่พักใน{}|โรงแรมกลางเมือง{}ราคาเท่าไร|โรงแรมไหนดีที่สุดใน{}|แนะนำที่พักใน{}|อยากพักโรงแรมที่{}สองคืน",
        "food": "ร้านอาหารอร่อยใน{}อยู่ที่ไหน|แนะนำร้านอาหารใน{}|ใกล้{}กินข้าวที่ไหนได้|อยากกินอาหารเย็นที่{}|อาหารขึ้นชื่อของ{}คืออะไร|จองโต๊ะร้านอาหารใน{}|ร้านอาหารไทยใน{}อยู่ไหน|หาร้านอาหารรีวิวดีใน{}",
        "route": "จากที่นี่ไป{}ไปอย่างไร|เส้นทางไป{}|ขับรถไป{}นานแค่ไหน|{}อยู่ไกลจากที่นี่แค่ไหน|บอกทางไป{}|นำทางไป{}|ไป{}นั่งรถอะไร|ถนนไป{}รถติดไหม",
        "time": "ตอนนี้ที่{}กี่โมงแล้ว|เวลาที่{}คือเท่าไร|บอกเวลาท้องถิ่นของ{}|เวลาที่{}ต่างจากที่นี่กี่ชั่วโมง|ตอนนี้{}เป็นกลางวันไหม|{}อยู่เขตเวลาไหน|ขอเวลาปัจจุบันที่{}|ตรวจสอบเวลาท้องถิ่น{}",
    },
    "english": {
        "weather": "how is the weather in {} today|will it rain in {} tomorrow|tell me the weather forecast for {}|what is the temperature in {}|is the weather in {} good this weekend|is it raining in {} now|check the weather of {}|the highest temperature in {} tomorrow",
        "flight": "book a flight ticket to {}|i want to fly to {}|search for flights to {}|when does the flight to {} leave|how much is a plane ticket to {}|are there cheap tickets to {}|book tomorrow's flight to {}|when is the earliest plane to {}",
        "hotel": "find a hotel in {}|i want to book a hotel room in {}|are there cheap hostels in {}|book a place to stay in {}|how much is a hotel in the centre of {}|which hotel in {} is the best|recommend a hostel in {}|i want to stay two nights in a hotel in {}",
        "food": "where is a good restaurant in {}|recommend a restaurant in {}|where can i eat near {}|i want to have dinner in {}|what is the most famous dish of {}|book a table at a restaurant in {}|where is a local restaurant in {}|find a well reviewed place to eat in {}",
        "route": "how do i get from here to {}|the route to {}|how long is the drive to {}|how far is {} from here|tell me the way to {}|navigate to {}|which bus goes to {}|is the road to {} jammed",
        "time": "what time is it in {} now|what is the time in {}|tell me the local time of {}|how many hours is {} ahead of here|is it daytime in {} now|which time zone is {} in|give me the present time in {}|check the local time of {}",
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        (language, way, labels, seed, f"{accuracy(language, way, labels, seed):.2f}")
        for language in SENTENCES
        for way in WAYS
        for labels in LABELS
        for seed in range(given.seeds)
    ]
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        header = ("language", "words", "labels", "seed", "accuracy")
        with given.out.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    means: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for language, way, labels, _, value in rows:
        means[language, way, labels].append(float(value))
    for cell, values in means.items():
        print(*cell, f"{np.mean(values):.1f} ({np.std(values):.1f})")


def accuracy(language: str, way: str, labels: int, seed: int) -> float:
    """In percent, on phrasings that were not labelled; chance is 17."""
    from sklearn.feature_extraction.text import TfidfTransformer

    rng, fillers = np.random.default_rng(seed), FILL[language].split()
    train: list[tuple[str, int]] = []
    test: list[tuple[str, int]] = []
    for label, phrasings in enumerate(SENTENCES[language].values()):
        shuffled = rng.permutation(phrasings.split("|"))
        seen = rng.permutation([phrase.format(name) for phrase in shuffled[:5] for name in fillers])
        train += [(str(text), label) for text in seen[:labels]]
        test += [(phrase.format(name), label) for phrase in shuffled[5:] for name in fillers]
    texts = [text for text, _ in train + test]
    idf = TfidfTransformer().fit(count_words(texts, COLUMNS, way)).idf_
    x, y = torch.from_numpy(word_vectors(texts, idf, way)), torch.tensor([label for _, label in train])
    head = fit_ridge(x[: len(train)], y, len(SENTENCES[language]))
    guess = head.logits(x[len(train) :]).argmax(1).numpy()
    return 100 * float((guess == [label for _, label in test]).mean())


if __name__ == "__main__":
    main()
