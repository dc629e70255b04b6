"""Wrong uses of the commands, one a line. The files that they name are made by `place`.

`python tests/wrong_uses.py > docs/results/wrong-uses.md` writes the page that shows the sentences of MORE and FURTHER.
What is wrong is the last option of the line but --out o, unless `# ...` says what the sentence must name instead.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy
from PIL import Image

# Values that the settings of `run` refuse.
RUN_VALUES = """
--benchmark nothing
--benchmark ''
--benchmark zero.csv --classes-per-task 1  # zero.csv
--benchmark oneclass.csv --classes-per-task 2
--benchmark objects.npz --classes-per-task 1  # objects.npz
--plugin exits.py --out o
--benchmark split-cifar
--benchmark digits
--benchmark cifar10
--benchmark empty  # --classes-per-task
--benchmark gaps.npz --classes-per-task 1  # without gaps
--benchmark commas.csv --classes-per-task 1  # decimal points
--benchmark headless.csv --classes-per-task 1  # headless.csv looks like data
--benchmark headless-names.csv --classes-per-task 1  # headless-names.csv looks like data
--benchmark bad.npz  # bad.npz
--benchmark nan.npz  # nan.npz
--benchmark nolabel.csv  # nolabel.csv
--benchmark words.txt
--benchmark ragged.csv --classes-per-task 1  # ragged.csv
--benchmark quote.csv --classes-per-task 1  # quote.csv
--benchmark texts.csv --classes-per-task 1  # texts.csv
--benchmark nolabel.csv --classes-per-task 1  # nolabel.csv
--benchmark numbers.csv  # --classes-per-task
--benchmark numbers.csv --classes-per-task 9
--benchmark numbers.csv --classes-per-task 2 --label-column kin
--benchmark numbers.csv --classes-per-task 2 --image-size 8
--benchmark numbers.csv --classes-per-task 2 --model conv4
--benchmark numbers.csv --classes-per-task 2 --domains 2
--benchmark numbers.csv --arrival given
--benchmark numbers.csv --task-column month
--benchmark numbers.csv --task-column a --classes-per-task 2
--benchmark three.npz --task-column month
--task-column month
--benchmark bad.json --classes-per-task 1
--benchmark bad.jsonl --classes-per-task 1
--benchmark bad.parquet --classes-per-task 1  # bad.parquet
--benchmark bad.arrow --classes-per-task 1  # bad.arrow
--benchmark bad.npz --classes-per-task 1  # bad.npz
--benchmark alone/lonely.npy --classes-per-task 1  # lonely.npy
--benchmark three.npz --classes-per-task 1  # three.npz
--benchmark nan.npz --classes-per-task 1  # nan.npz
--benchmark badimages --classes-per-task 1  # badimages
--benchmark sizes --classes-per-task 1  # sizes
--benchmark paths.csv --classes-per-task 1  # no.png
--benchmark split-cifar10 --data-dir empty
--benchmark split-cifar100 --data-dir words.txt
--benchmark split-tiny-imagenet --data-dir nowhere
--learner der
--learner ER
--learner adam
--learner ridge --model mlp
--strategy best
--strategy entropie
--strategy BADGE
--scale huge
--scale CPU
--memory -1
--memory many
--memory 1.5
--memory-policy random
--memory-policy herd
--seed -1
--seed one
--seed 1e3
--tasks -1
--tasks two
--classes-per-task -2
--classes-per-task 11
--order backwards
--order 3,1,1
--order 3,1,99  # 99
--order 1,2,3
--order 0,a
--order-seed -1
--arrival sometime
--arrival given
--domains 1
--domains 3
--domains -1
--recurring -1
--blur 1
--blur -0.1
--blur lots
--classes-per-task 10 --blur 0.1
--imbalance 0
--imbalance 2
--label-noise 1
--label-noise -1
--noise loud
--stream-seed -1
--labels 0
--labels -5
--labels none
--rounds 0
--rounds 99
--last-rounds -1
--pool -1
--test -1
--epochs 0
--epochs 1.5
--epochs 99999999999999999999
--seed 99999999999999999999999
--stream-seed 18446744073709551616
--width 99999999999
--batch 99999999999999999999
--threads 100000
--memory 99999999999999999999
--labels 1000000000 --rounds 1000000000
--recurring 1000000000000
--image-size 999999999
--lr inf
--lr nan
--oversample inf
--batch 0
--lr 0
--lr -1
--lr fast
--momentum 1
--momentum -1
--weight-decay -1
--model resnet
--model conv4
--model nowhere.py:build
--model net.py
--model net.py:
--model net.py:missing  # missing
--model net.py:text
--model net.py:softmax
--model net.py:training --out o
--model net.py:small
--model net.py:build --width 5
--model net.py:build --learner ridge
--width -1
--learner-variant old
--replay twice
--alpha -1
--beta -1
--sampling odd
--first-round none
--variant newest
--keep -1
--lam 2
--lam -1
--lam-from 0
--oversample 0.5
--evaluate never
--threads 0
--threads -2
--device gpu
--device cuda:99
--device tpu
--image-size -1
--image-size 8
--label-column digit
--benchmark split-cifar10 --image-size 16
--arrival by-ink
--config nowhere.yaml
--config empty
--config words.txt
--config bad.yaml
--config list.yaml
--config unknown.yaml
--config seeds.yaml  # seeds
--config typed.yaml  # memory
--config bool.yaml  # seed
--config boolfloat.yaml  # lr
--config twice.yaml  # budget
--plugin nowhere.py
--plugin words.txt
--memry 3
--no-such-option
stray
--out words.txt
--out words.txt/below
--out .
--out ./
--out full
--out full --fresh  # mine.txt
--seed
""".strip().splitlines()

SELECT = """

--pool pool.parquet  # --budget
--pool pool.parquet --budget 3  # --out
--budget 3 --out out.csv  # --pool
--pool nowhere.parquet --budget 3 --out out.csv  # nowhere.parquet
--pool empty --budget 3 --out out.csv  # empty
--pool words.txt --budget 3 --out out.csv  # words.txt
--pool bad.parquet --budget 3 --out out.csv  # bad.parquet
--pool numbers.parquet --budget 3 --out out.csv  # numbers.parquet
--pool pool.parquet --budget -1 --out out.csv  # --budget
--pool pool.parquet --budget many --out out.csv  # --budget
--pool pool.parquet --budget 3 --out nowhere/out.csv
--pool pool.parquet --budget 3 --out empty
--pool pool.parquet --budget 3 --out out.xlsx
--pool pool.parquet --budget 3 --out out
--pool pool.parquet --budget 3 --out out.csv --strategy best
--pool pool.parquet --budget 3 --out out.csv --strategy full
--pool pool.parquet --budget 3 --out out.csv --strategy accuacl --memory pool.parquet
--pool pool.parquet --budget 3 --out out.csv --memory nowhere.parquet --past 5  # memory: there is no file
--pool pool.parquet --budget 3 --out out.csv --memory wide.parquet --past 5
--pool pool.parquet --budget 3 --out out.csv --labelled nowhere.parquet
--pool pool.parquet --budget 3 --out out.csv --labelled bad.parquet
--pool pool.parquet --budget 3 --out out.csv --past -1
--pool pool.parquet --budget 3 --out out.csv --past some
--pool pool.parquet --budget 3 --out out.csv --lam 2
--pool pool.parquet --budget 3 --out out.csv --seed -1
--pool pool.parquet --budget 3 --out out.csv --seed one
--pool pool.parquet --budget 3 --out out.csv --engine cloud
--pool pool.parquet --budget 3 --out out.csv --workers -1
--pool pool.parquet --budget 3 --out out.csv --plugin nowhere.py
--pool pool.parquet --budget 3 --out out.csv --id-column key
--pool pool.parquet --budget 3 --out pool.parquet
--pool pool.parquet --budget 3 --out out.csv stray
--pool pool.parquet --budget 3 --out out.csv --bugdet 4
--pool nanpool.parquet --budget 3 --out out.csv --strategy entropy  # nanpool.parquet
--pool sums.parquet --budget 3 --out out.csv --strategy entropy  # sums.parquet
--pool pool.parquet --budget 3 --out out.csv --strategy badge --address 10.0.0.1:6379
--pool pool.parquet --budget 3 --out out.csv --strategy badge --engine cloud
--pool norows.parquet --budget 3 --out out.csv --strategy badge  # pool
--pool norows.parquet --budget 3 --out out.csv --strategy entropy  # the pool has no rows
--pool latin.parquet --budget 3 --out out.csv  # latin.parquet
--pool pool.parquet --budget 3 --out out.csv --exclude latin.parquet
""".splitlines()[1:]

EMBED = """

--data numbers.parquet --out out  # --run
--data numbers.parquet --out out --run nowhere
--data numbers.parquet --out out --run empty
--data numbers.parquet --out out --run empty --model net.py:build
--data numbers.parquet --out out --weights words.txt  # --model
--data numbers.parquet --out words.txt --model net.py:build  # words.txt
--data numbers.parquet --out out --model nowhere.py:build
--data numbers.parquet --out out --model net.py
--data x.npy --out out --model net.py:missing  # missing
--data x.npy --out out --model net.py:text
--data x.npy --out out --model net.py:small
--data x.npy --out out --model net.py:softmax  # softmax
--model net.py:training --out o  # --data
--data x.npy --out out --model net.py:build --weights words.txt
--data x.npy --out out --model net.py:build --weights nowhere.safetensors
--data x.npy --out out --model net.py:build --device gpu
--data x.npy --out out --model net.py:build --batch 0
--data x.npy --out out --model net.py:build --shard-rows 0
--data x.npy --out out --model net.py:build --image-size -1
--data nowhere.npy --out out --model net.py:build  # nowhere.npy
--data words.txt --out out --model net.py:build  # words.txt
--data empty --out out --model net.py:build  # empty
--data badimages --out out --model net.py:build  # badimages
--data bad.parquet --out out --model net.py:build  # bad.parquet
--data lonely3.npy --out out --model net.py:build  # lonely3.npy
--data badimages --out badimages/pool --model net.py:build  # badimages
--data x.npy --model net.py:build  # --out
--out out --model net.py:build  # --data
--data x.npy --out out --model net.py:build stray
--data x.npy --out . --model net.py:build  # . holds
--data x.npy --out full --model net.py:build  # full
--data x.npy --out full --model net.py:build --fresh  # full
--data nanvectors.parquet --out out --model net.py:build  # nanvectors.parquet
--data nanvectors.parquet --out deep/er/out --model net.py:build  # nanvectors.parquet
--data rows.parquet --out out --model net.py:build  # rows.parquet
--data x.npy --out out --model net.py:build --column zz
--data x.npy --out out --model net.py:build --id-column zz
--data sizes --out out --model net.py:build --column zz
--data latin.parquet --out out --model net.py:build  # latin.parquet
--data 'nothing*.parquet' --out out --model net.py:build  # nothing*.parquet
--data x.npy --out out --model net.py:build --weights other.safetensors
--data list.jsonl --out out --model net.py:build  # line 2 is not a readable image (the row has no image)
--data x.npy --out pool --model net.py:build  # manifest.json is not the record of a pool
""".splitlines()[1:]

PROJECT = """

nothing
new
new p
new p --images nowhere
new p --table headless.csv  # headless.csv looks like data
new p --table numbers.csv --plugin nowhere.py
new p --table numbers.csv --plugin net.py
new p --images empty
new p --images words.txt
new p --images badimages --texts texts.csv
new p --images badimages --label-column kind  # labels
new p --images badimages --task-column task
new p --images sizes --model resnet50
new p --images sizes --model nowhere.py:build
new p --images badimages
new p --images badimages --mean a,b,c
new p --images sizes --std 1,2
new p --vectors nowhere.parquet
new p --vectors words.txt
new p --vectors bad.parquet
new p --vectors nanvectors.parquet
new p --vectors strings.parquet
new p --vectors numbers.parquet --label-column nothing
new p --vectors numbers.parquet --classes a,a
new p --vectors numbers.parquet --classes a,,b
new p --table numbers.csv --id-column a --label-column a
new p --table numbers.csv --task-column label --label-column label
new p --vectors numbers.parquet --per-round 0
new p --vectors numbers.parquet --per-round some
new p --vectors numbers.parquet --per-round 999999999999999999999999
new p --vectors numbers.parquet --seed 999999999999999999999999
new p --vectors numbers.parquet --lr inf
new p --vectors numbers.parquet --rounds 0
new p --vectors numbers.parquet --strategy best
new p --vectors numbers.parquet --learner der
new p --vectors numbers.parquet --holdout 2
new p --vectors numbers.parquet --close-at 0
new p --vectors numbers.parquet --memory -1
new p --vectors numbers.parquet --epochs 0
new p --vectors numbers.parquet --lr 0
new p --vectors numbers.parquet --head wide
new p --vectors numbers.parquet --keep all
new p --vectors numbers.parquet --seed -1
new p --vectors numbers.parquet --device gpu
new p --vectors numbers.parquet --ignore x
new p --vectors numbers.parquet --no-such 1
new full --vectors numbers.parquet  # full
new words.txt --vectors numbers.parquet  # words.txt
new p --texts nowhere.csv
new p --texts words.txt --column body
new p --texts blank.csv
new p --texts quote.csv
new p --texts ragged.csv
new p --texts texts.csv --column body
new p --texts texts.csv --label-column nothing
new p --texts bad.jsonl --column text
new p --texts twice.csv
new p --table nowhere.csv
new p --table ragged.csv
new p --table twicecolumn.csv
new p --table texts.csv --id-column nothing
new p --table texts.csv --label-column nothing
new p --table texts.csv --ignore nothing
new p --table latin.parquet
new p --texts latin.parquet --column id
new p --table twonames.parquet  # two columns with the same name
new p --files words.txt --model net.py:build  # words.txt is not a folder
new p --images sizes/train --model net.py:flat --image-size 5
new p --images sizes/train --model net.py:flat --image-size 4 --weights other.safetensors
gold nowhere numbers.csv  # nowhere
gold full numbers.csv  # full
serve empty --overlap 0.5
add
add nowhere --images badimages  # nowhere
add full --images badimages  # full
add words.txt --texts texts.csv  # words.txt
serve nowhere
serve full
train nowhere
train full
status nowhere
status full
export nowhere --out out  # nowhere
export full --out out  # full
forget nowhere a
forget full a
person nowhere add Ada  # nowhere
person full add Ada  # full
person full remove Ada  # remove
label nowhere --from numbers.csv  # nowhere
label full --from numbers.csv  # full
label
push nowhere --label-studio http://127.0.0.1:1  # nowhere
push full --label-studio http://127.0.0.1:1  # full
pull nowhere --label-studio http://127.0.0.1:1  # nowhere
""".splitlines()[1:]

OTHERS = """
nothing
rum
--no-such
sweep
sweep nowhere.yaml
sweep words.txt
sweep bad.yaml
sweep list.yaml
sweep unknown.yaml  # colour
sweep seeds.yaml  # seeds
sweep grid.yaml --engine cloud
sweep grid.yaml --workers -1
sweep grid.yaml --only strategy
sweep grid.yaml --only colour=red
sweep grid.yaml --only strategy=best
sweep grid.yaml --plugin nowhere.py
sweep grid.yaml --gpus -1
sweep emptylist.yaml  # strategy
sweep nogrids.yaml  # grids
paper
paper mian
paper main --scale huge
paper main --only colour=red
paper main --only seed=99
paper main --workers -1
paper main --data-dir words.txt
paper main --data-dir empty
paper main --data-dir empty --out deep/er
sweep grid.yaml --data-dir words.txt
sweep grid.yaml --data-dir nowhere
sweep cifar.yaml --data-dir empty
doctor --data-dir nowhere
doctor --data-dir words.txt
report
report nowhere --out r.html  # nowhere
report empty --out r.html  # empty
report words.txt --out r.html  # words.txt
report empty --out nowhere/r.html  # nowhere
report bad.csv --out r.html  # bad.csv
report empty --out r.docx
report empty --format pdf
report numbers.csv --out r.pdf
report numbers.csv --out r.pdf --format html
report numbers.csv --out r.md --format latex
report numbers.csv --out r.html --format csv
doctor stray
sweep grid.yaml --only strategy=uniform --only strategy=entropy
paper efficiency --only tasks=1
paper efficiency --out times
run --benchmark shards --classes-per-task 1 --out o  # different columns
run --benchmark narrow --classes-per-task 1 --out o  # test.csv has no column of numbers b
run --benchmark latin.parquet --classes-per-task 1 --out o  # latin.parquet
""".strip().splitlines()

# Tried by somebody who had not seen the others.
MORE = """
check
check nowhere.py
check words.txt
check net.py
check empty
check exits.py
check grid.yaml
check net.py --strict
check numbers.csv
select --pool pool.parquet --budget 0 --out out.csv --option
select --pool pool.parquet --budget 3 --out out.csv --option share
select --pool pool.parquet --budget 3 --out out.csv --option =0.3
select --pool pool.parquet --budget 3 --out out.csv --strategy accuacl+uniform --option share=2
select --pool pool.parquet --budget 3 --out out.csv --strategy accuacl+uniform --option share=half
select --pool pool.parquet --budget 3 --out out.csv --strategy margin --option share=0.3
select --pool pool.parquet --budget 3 --out out.csv --strategy coverage --sample -4
select --pool pool.parquet --budget 3 --out out.csv --strategy coverage --option sample=1e999
select --pool pool.parquet --budget 3 --out out.csv --strategy ../coverage
select --pool pool.parquet --budget 3.5 --out out.csv  # budget
select --pool pool.parquet --budget 1,000 --out out.csv  # budget
select --pool pool.parquet --budget 3 --out out.csv --memory-limit 5
select --pool pool.parquet --budget 3 --out out.csv --memory-limit lots
select --pool pool.parquet --budget 3 --out out.csv --memory-limit -2GB
select --pool pool.parquet --budget 3 --out out.csv --exclude nowhere.csv
select --pool pool.parquet --budget 3 --out out.csv --exclude words.txt  # out
select --pool pool.parquet --budget 3 --out out.csv --exclude numbers.csv
select --pool pool.parquet --budget 3 --out out.csv --exclude bad.parquet
select --pool numbers.csv --budget 3 --out out.csv  # numbers.csv
select --pool x.npy --budget 3 --out out.csv  # x.npy
select --pool pool.parquet pool.parquet --budget 3 --out out.csv  # pool.parquet
select --pool '*.nothing' --budget 3 --out out.csv  # *.nothing
select --pool pool.parquet --budget 3 --out out.csv --embedding-column vec
select --pool pool.parquet --budget 3 --out out.csv --probability-column p
select --pool rows.parquet --budget 3 --out out.csv --strategy coverage  # rows.parquet
select --pool pool.parquet --budget 3 --out out.csv --labelled pool.parquet --memory words.txt --past 3  # words.txt
select --pool pool.parquet --budget 3 --out out.CSV/x
select --pool '' --budget 3 --out out.csv  # pool
run --benchmark split-digits --strategy accuacl,badge --out o
run --strategy accuacl --strategy badge --learner er,gss --out o
run --option sample=5 --strategy margin --out o
run --option sample --strategy coverage --out o  # --option
run --memory-policy best --out o
run --memory-policy coverage --learner ridge --out o
run --learner ridge --scale smoke --memory-policy herding --out o
run --scale Paper --out o
run --seed 0.5 --out o
run --seed 0,1,2 --out o
run --labels 1e3 --out o
run --order 0,1,2 --out o
run --order random --out o
run --order 0,0,1,1,2,2,3,3,4,4 --out o
run --blur 2 --out o
run --label-noise 1.5 --out o
run --noise alike --out o
run --imbalance 0 --out o
run --recurring -1 --out o
run --arrival classes --domains 1 --out o
run --model nowhere.py:build --out o
run --model net.py:text --out o
run --model net.py:missing --out o  # missing
run --model net --out o
run --learner-variant newest --learner er --out o
run --first-round best --out o
run --augment maybe --out o
run --lr nan --out o
run --lr -0.1 --out o
run --momentum 1 --out o
run --weight-decay -1 --out o
run --batch 0 --out o
run --rounds 0 --out o
run --labels 5 --rounds 9 --out o
run --pool -3 --out o
run --data-dir nowhere --benchmark split-cifar100 --out o  # nowhere
run --config grid.yaml --out o  # strategy
run --config numbers.csv --out o
run --plugin net.py --out o
run --plugin bad.json --out o
run --device 'cuda:x' --out o
run --threads two --out o
run --benchmark numbers.csv --classes-per-task 0.5 --out o
run --benchmark numbers.csv --classes-per-task -1 --out o
run --benchmark numbers.csv --label-column a --out o
run --benchmark pool.parquet --classes-per-task 1 --out o  # pool.parquet
run --benchmark strings.parquet --classes-per-task 1 --out o  # strings.parquet
run --benchmark . --classes-per-task 1 --out o  # bad.npz
run --benchmark x.npy --classes-per-task 1 --out o  # x.npy
run --log-to nowhere --out o
run --log-to tensorboard --out o
report words.txt
report nowhere --baseline accuacl
report empty --baseline
report . --format html  # .
report empty --only seed  # empty
report bad.csv --format html --out r.html  # bad.csv
sweep numbers.csv
sweep grid.yaml --workers many
sweep grid.yaml --out words.txt
sweep grid.yaml --only strategy=badge
sweep empty
paper list --scale tiny
embed --data texts.csv --model net.py:build --out out  # texts.csv
embed --data numbers.csv --column words --model net.py:build --out out  # numbers.csv
embed --data x.npy --model net.py:build --out out --run empty --trust-code  # run
embed --data sizes --model net.py:build --out out  # sizes
embed --data bad.npz --model net.py:build --out out  # bad.npz
project serve words.txt
project status
project status numbers.csv
project train empty
project export nowhere --out e
project forget nowhere 1  # nowhere
project backup nowhere b  # nowhere
project gold nowhere --from numbers.csv
project person nowhere remove Ada  # remove
project relocate nowhere a b  # a
project push nowhere  # push
project add nowhere --texts texts.csv  # nowhere
project new p --files empty
project new p --files sizes
project new p --files sizes --model net.py:text  # p
project new p --texts texts.csv --model nowhere.onnx
project new p --texts texts.csv --words letters
project new p --texts texts.csv --text-features 3
project new p --texts texts.csv --task-column nothing
project new p --table twice.csv
project new p --table numbers.csv --ignore nothing
project new p --table numbers.csv --label-column nothing
project new p --table bad.json
project new p --table numbers.csv --option sample=x --strategy coverage  # x
project new p --table numbers.csv --option depth=3
project new p --table numbers.csv --budget-total 10 --rounds 3
project new p --table numbers.csv --budget-tasks 3
project new p --table numbers.csv --overlap 2
project new p --table numbers.csv --keep statistics --learner er
project new p --table numbers.csv --learner ridge --head mlp
project new p --table numbers.csv --finetune
project new p --table numbers.csv --weights words.txt
project new p --table numbers.csv --pool-learning self --learner er
project new p --table numbers.csv --first-round best
project new p --table numbers.csv --memory-policy best
project new p --table numbers.csv --image-size -5
project new p --table numbers.csv --runtime fast
project new p --table numbers.csv --plugin exits.py
project new p --table numbers.csv --plugin words.txt
project new p --table numbers.csv --classes ' , '
project new '' --table numbers.csv  # project
project new p --images sizes --images empty
project new p --images sizes/train/cat/0.png
project new p --vectors numbers.csv
project new p --vectors pool.parquet --texts texts.csv
project new p --vectors rows.parquet
project new p --table numbers.csv --threads 0
project new p --table numbers.csv --holdout 1
project new p --table numbers.csv --width 0 --head mlp  # 0
--help-me
rnu
select --help-me
""".strip().splitlines()

# Tried later, again by somebody who had not seen the others: damaged and odd files, devices, projects in the way.
FURTHER = """
select --pool nullid.parquet --budget 3 --out out.csv  # nullid.parquet
select --pool dupid.parquet --budget 3 --out out.csv  # dupid.parquet
select --pool timeid.parquet --budget 3 --out out.csv  # timeid.parquet
select --pool floatid.parquet --budget 3 --out out.csv  # floatid.parquet
select --pool largeid.parquet --budget 3 --out out.csv  # largeid.parquet
select --pool nullrow.parquet --budget 3 --out out.csv  # nullrow.parquet
select --pool words.parquet --budget 3 --out out.csv  # words.parquet
select --pool scalar.parquet --budget 3 --out out.csv  # scalar.parquet
select --pool nodim.parquet --budget 3 --out out.csv  # nodim.parquet
select --pool huge.parquet --budget 3 --out out.csv  # huge.parquet
select --pool inf.parquet --budget 3 --out out.csv  # inf.parquet
select --pool negative.parquet --budget 3 --out out.csv  # negative.parquet
select --pool cut.parquet --budget 3 --out out.csv  # cut.parquet
select --pool middle.parquet --budget 3 --out out.csv  # middle.parquet
select --pool nocolumns.parquet --budget 3 --out out.csv  # nocolumns.parquet has no column
select --pool /dev/null --budget 3 --out out.csv  # /dev/null
select --pool - --budget 3 --out out.csv  # folder -
select --pool http://127.0.0.1/pool.parquet --budget 3 --out out.csv  # pool.parquet
select --pool pool.parquet --budget 3 --out ''  # folder
select --pool pool.parquet --budget 3 --out .csv
select --pool pool.parquet --budget 3 --out '~nobody/out.csv'
select --pool pool.parquet --budget 3 --out out.csv --labelled two.parquet
select --pool pool.parquet --budget 3 --out out.csv --memory-limit 1KB  # at least 1MiB
select --pool pool.parquet --budget 3 --out out.csv --exclude empty
select --pool pool.parquet --budget 3 --out out.csv --exclude utf16.csv
select --pool pool.parquet --budget 3 --out out.csv --id-column ''
select --pool pool.parquet --budget 3 --out out.csv --id-column embedding
select --pool pool.parquet --budget 3 --out out.csv --embedding-column id
select --pool pool.parquet --budget 3 --out out.csv --strategy ''
select --pool pool.parquet --budget 3 --out out.csv --plugin taken.py  # accuacl
check taken.py  # accuacl
check spaced.py  # a b/c
check bare.py  # register
check noquery.py
check required.py
check three.py  # mine
check ''  # python file
run --config deep.yaml --out o
run --config digits.yaml --out o
run --config object.yaml --out o
run --config tab.yaml --out o
run --config date.yaml --out o  # seed
run --config numbered.yaml --out o
run --config null.yaml --out o  # strategy
run --config nothing.yaml --out o
run --config documents.yaml --out o
run --config utf16.csv --out o
run --config options.yaml --out o  # options
run --config infinite.yaml --out o  # lr
run --out proj
run --out proj --fresh  # proj holds a labelling project
run --benchmark utf16.csv --classes-per-task 1 --out o  # utf16.csv
run --benchmark header.csv --classes-per-task 1 --out o  # header.csv
run --benchmark deep.json --classes-per-task 1 --out o  # deep.json
run --benchmark deep.jsonl --classes-per-task 1 --out o  # deep.jsonl
run --benchmark hashes.npz --classes-per-task 1 --out o  # hashes.npz
run --benchmark complex.npz --classes-per-task 1 --out o  # complex.npz
run --benchmark halves.npz --classes-per-task 1 --out o  # halves.npz
run --benchmark negative.npz --classes-per-task 1 --out o  # negative.npz
run --benchmark norows.npz --classes-per-task 1 --out o  # norows.npz
run --benchmark garbled.npz --classes-per-task 1 --out o  # garbled.npz
run --benchmark locked.npz --classes-per-task 1 --out o  # locked.npz
run --benchmark other.npz --classes-per-task 1 --out o  # other.npz
run --benchmark broad.csv --classes-per-task 1 --label-column kind --out o  # and 280 more
sweep deep.yaml
sweep digits.yaml
sweep lists.yaml  # without lists inside
sweep null.yaml  # strategy
sweep date.yaml  # seed
report '' --only strategy  # holds no finished run
embed --data '' --model net.py:build --out out  # ''
embed --data header.npy --model net.py:build --out out  # header.npy
embed --data lying.npy --model net.py:build --out out  # lying.npy
embed --data garbled.npz --model net.py:build --out out  # garbled.npz
embed --data x.npy --model net.py:build:more --out out  # net.py:build:more
embed --data x.npy --model net.py:build --out out --weights empty
project new p --table utf16.csv
project new p --table header.csv
project new p --texts deep.jsonl
project new p --texts long.csv
project new p --vectors nullid.parquet
project new p --vectors dupid.parquet
project new p --vectors words.parquet
project new p --vectors inf.parquet
project new p --vectors nocolumns.parquet
project new p --table numbers.csv --classes 'a, a'
project new p --table numbers.csv --ignore a --ignore b --ignore label  # numbers.csv
project new p --table broad.csv --id-column key  # and 280 more
project new p --table numbers.csv --device cuda:7
project new words.txt/p --table numbers.csv  # words.txt
project status lost
project train lost
project status proj
project add full --table numbers.csv  # full
project serve lost --port 99999
project serve lost --port http
project serve lost --proxy-address 127.0.0.1
""".strip().splitlines()

LINES = [
    *(f"run {use}" for use in RUN_VALUES),
    *(f"select {use}" for use in SELECT),
    *(f"embed {use}" for use in EMBED),
    *(f"project {use}" for use in PROJECT),
    *OTHERS,
    *MORE,
    *FURTHER,
]
USES = {use: culprit for use, _, culprit in (line.partition("  # ") for line in LINES)}


def culprits(use: str) -> set[str]:
    """The words of which the sentence about a wrong use must have one, in lower case."""
    if USES[use]:
        return {USES[use].lower()}
    words = shlex.split(use.removesuffix(" --out o"))
    last = max((place for place, word in enumerate(words) if word.startswith("--")), default=len(words) - 1)
    named = [part.strip("-").lower() for word in words[last:] for part in word.split("=")]
    return {spelt for name in named for spelt in (name, name.replace("-", "_"), name.replace("-", " "))} - {""}


PAGE = """# Wrong uses and what they say

{count} wrong uses that were in no test before somebody tried them. Each ends with exit code 2 and one sentence.
`python tests/wrong_uses.py > docs/results/wrong-uses.md` runs them and writes this page; DIR stands for the folder in
which the commands ran. `tests/test_wrong_uses.py` runs these and all others.

| accuacl ... | exit code | accuacl: ... |
|---|--:|---|
"""


def page() -> str:
    """The uses of MORE and FURTHER with their exit codes and sentences, as Markdown."""
    from commands import accuacl  # here: it imports most of the package

    rows = []
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings(action="ignore"):
        folder = Path(directory).resolve() / "DIR"
        folder.mkdir()
        place(folder)
        os.environ["ACCUACL_CACHE"] = f"{directory}/cache"
        os.environ.pop("ACCUACL_DATA", None)
        for line in MORE + FURTHER:
            use = line.partition("  # ")[0]
            ended = accuacl(*shlex.split(use), cwd=folder, width=100)
            said = ended.stderr.strip().removeprefix("accuacl: ").replace(str(folder), "DIR")
            rows.append(f"| `{use}` | {ended.returncode} | {_plain(said)} |\n")
    return PAGE.format(count=len(rows)) + "".join(rows)


def _plain(text: str) -> str:
    """Text for a cell of a Markdown table; what is in backticks stays as it is."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_|<\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


NET = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))

def softmax():
    return nn.Sequential(nn.Linear(2, 3), nn.Softmax(1))

class Training(nn.Sequential):
    def forward(self, x):
        z = super().forward(x)
        return z.softmax(1) if self.training else z

def training():
    return Training(nn.Linear(64, 4), nn.Linear(4, 3))

def small():
    return nn.Linear(7, 3)

def text():
    return "a net"

def flat():
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 4), nn.ReLU(), nn.Linear(4, 3))
"""
REGISTERED = "from accuacl import register\n{}\n"
FILES = {
    "words.txt": "just words\n",
    "net.py": NET,
    "numbers.csv": "a,b,label\n1,2,x\n2,3,y\n3,4,x\n4,5,y\n",
    "commas.csv": "a;b;label\n1,5;2,5;x\n2,5;3;y\n3,5;4,25;x\n4;5,5;y\n",
    "headless.csv": "7,5,1\n2,3,0\n3,4,1\n",
    "headless-names.csv": "7,5,cat\n2,3,dog\n3,4,cat\n",
    "ragged.csv": "text,label\none,a\ntwo,b,c\n",
    "quote.csv": 'text,label\n"one,a\ntwo,"b"\n',
    "texts.csv": "text,label\nhello,a\nyou,b\nthere,a\n",
    "blank.csv": "text\n \n",
    "twice.csv": "id,text\n1,a\n1,b\n",
    "twicecolumn.csv": "a,a\n1,2\n",
    "paths.csv": "path,label\nno.png,a\nnone.png,b\n",
    "zero.csv": "",
    "oneclass.csv": "a,label\n1,x\n2,x\n3,x\n",
    "exits.py": "import sys\nsys.exit(0)\n",
    "nolabel.csv": "a,b\n1,2\n",
    "bad.json": "{",
    "bad.jsonl": '{"text": "a"}\n{"text"\n',
    "bad.parquet": "PAR1",
    "bad.arrow": "ARROW",
    "bad.npz": "PK",
    "bad.csv": "a,b\n1\n",
    "bad.yaml": "a: [1\n",
    "list.yaml": "- a\n- b\n",
    "unknown.yaml": "colour: red\n",
    "seeds.yaml": "seeds: 3\n",
    "typed.yaml": "memory: much\n",
    "bool.yaml": "seed: true\n",
    "boolfloat.yaml": "lr: true\n",
    "twice.yaml": "labels: 3\nbudget: 4\n",
    "grid.yaml": "strategy: [uniform, entropy]\ntasks: 1\n",
    "cifar.yaml": "benchmark: [split-cifar10, split-cifar100]\n",
    "emptylist.yaml": "strategy: []\n",
    "nogrids.yaml": "grids: 3\n",
    "proj/config.json": '{"learner": "kernel", "kind": "tables"}',
    "proj/labels.sqlite": "not a database",
    "lost/config.json": '{"learner": "kernel", "kind": "tables"}',
    "lost/labels.sqlite": "",
    "header.csv": "id,a,b\n",
    "long.csv": f"text,label\n{'x' * 200_000},a\nb,b\n",
    "broad.csv": f"{','.join(f'c{i}' for i in range(300))}\n{','.join('1' * 300)}\n",
    "deep.json": "[" * 100_000,
    "deep.jsonl": f'{{"text": {"[" * 100_000}\n',
    "deep.yaml": f"a: {'[' * 5000}",
    "digits.yaml": f"seed: {'9' * 5000}\n",
    "object.yaml": 'strategy: !!python/object/apply:os.system ["true"]\n',
    "tab.yaml": "strategy: uniform\n\tseed: 0\n",
    "date.yaml": "seed: 2024-01-01\n",
    "numbered.yaml": "1: 2\n",
    "null.yaml": "strategy: null\n",
    "nothing.yaml": "",
    "documents.yaml": "seed: 0\n---\nseed: 1\n",
    "options.yaml": "strategy: coverage\noptions: [1]\n",
    "infinite.yaml": "lr: .inf\n",
    "lists.yaml": "strategy: [[uniform]]\n",
    "taken.py": REGISTERED.format('register("accuacl")(lambda query: query)'),
    "spaced.py": REGISTERED.format('register("a b/c")(lambda query: query)'),
    "bare.py": REGISTERED.format("register(lambda query: query)"),
    "noquery.py": REGISTERED.format('register("mine")(lambda: 0)'),
    "required.py": REGISTERED.format('register("mine")(lambda query, *, heat: 0)'),
    "three.py": REGISTERED.format('register("mine")(3)'),
    "full/mine.txt": "somebody's file\n",
    "times/efficiency.csv": "a,b\n1,2\n",
    "pool/manifest.json": "[]",
    "list.jsonl": '{"id": "a", "image": "sizes/train/cat/0.png"}\n{"id": "b", "image": null}\n',
    "narrow/train.csv": "a,b,label\n1,2,x\n2,3,y\n",
    "narrow/test.csv": "a,label\n1,x\n2,y\n",
    "badimages/train/cat/0.png": "no image",
    "badimages/test/cat/0.png": "no image",
}


def place(folder: Path) -> None:
    """Make the files that the wrong uses name."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "empty").mkdir()
    for split, side in (("train", 4), ("test", 6)):
        (folder / "sizes" / split / "cat").mkdir(parents=True)
        Image.new("RGB", (side, side)).save(folder / "sizes" / split / "cat" / "0.png")
    np.save(folder / "x.npy", np.ones((4, 2), np.float32))
    (folder / "alone").mkdir()
    np.save(folder / "alone" / "lonely.npy", np.ones((4, 2), np.float32))
    (folder / "alone" / "damaged.npz").write_bytes(b"PK")  # which has nothing to do with it
    np.save(folder / "lonely3.npy", np.ones((4, 2, 2), np.float32))
    np.savez(folder / "three.npz", x=np.ones((4, 2)), y=np.arange(3))
    np.savez(folder / "gaps.npz", x=np.eye(30, 2), y=np.repeat([0, 10, 20], 10))
    np.savez(folder / "objects.npz", x=np.array([{}]), y=np.zeros(1, int))
    np.savez(folder / "nan.npz", x=np.full((4, 2), np.nan), y=np.arange(4) % 2)
    p = np.full((6, 3), 1 / 3, np.float32)
    pool = {"id": list(range(6)), "embedding": [[1.0, 2.0]] * 6}
    tables = {
        "pool": pool | {"probability": p.tolist()},
        "wide": pool | {"embedding": [[1.0] * 5] * 6, "probability": p.tolist()},
        "nanpool": pool | {"probability": [[float("nan")] * 3] * 6},
        "sums": pool | {"probability": (3 * p).tolist()},
        "norows": {name: pa.array([], pa.list_(pa.float32(), 3)) for name in ("embedding", "probability")}
        | {"id": pa.array([], pa.int64())},
        "numbers": {"a": [1.0, 2.0], "b": [1.0, 2.0]},
        "strings": {"a": ["x", "y"]},
        "rows": {"embedding": [[1.0, 2.0], [1.0]]},
        "nanvectors": {"embedding": [[1.0, float("nan")]]},
        **_odd_pools(pool, p.tolist()),
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    whole = (folder / "pool.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "middle.parquet").write_bytes(whole[:10] + b"\xff" * 100 + whole[110:])
    names = pa.array([b"a", b"\xe4", b"b", b"c", b"d", b"e"], pa.binary()).view(pa.string())  # in Latin-1
    latin = pool | {"id": names, "probability": p.tolist(), "label": ["x", "y"] * 3}
    pq.write_table(pa.table(latin), folder / "latin.parquet")
    pq.write_table(pa.table([[1.0, 2.0]] * 2, names=["a", "a"]), folder / "twonames.parquet")
    (folder / "shards").mkdir()
    png = (folder / "sizes" / "train" / "cat" / "0.png").read_bytes()
    for name, more in (("train-0", {}), ("train-1", {"extra": [1, 2]}), ("test", {})):
        pq.write_table(pa.table({"image": [png] * 2, "label": [0, 1]} | more), folder / "shards" / f"{name}.parquet")
    safetensors.numpy.save_file({"other": np.ones(3, np.float32)}, folder / "other.safetensors")
    (folder / "utf16.csv").write_bytes("id,a\n1,2\n".encode("utf-16"))
    _odd_arrays(folder)


def _odd_pools(pool: dict[str, list], p: list) -> dict[str, dict]:
    """Parquet files with one column that cannot be used."""
    ids, rows = [*range(6)], pool["embedding"]
    columns = {
        "nullid": {"id": [None, *ids[1:]]},
        "dupid": {"id": [7] * 6},
        "timeid": {"id": pa.array(ids, pa.timestamp("s"))},
        "floatid": {"id": [each + 0.5 for each in ids]},
        "largeid": {"id": pa.array([2**64 - 1 - each for each in ids], pa.uint64())},
        "nullrow": {"embedding": [None, *rows[1:]]},
        "words": {"embedding": [["a", "b"]] * 6},
        "scalar": {"embedding": [1.0] * 6},
        "nodim": {"embedding": pa.array([[]] * 6, pa.list_(pa.float32()))},
        "huge": {"embedding": [[1e300, 1.0]] * 6},
        "inf": {"embedding": [[float("inf"), 1.0]] * 6},
        "negative": {"probability": [[-1.0, 1.0, 1.0]] * 6},
        "two": {"probability": [[0.5, 0.5]] * 6},
    }
    return {name: pool | {"probability": p} | odd for name, odd in columns.items()} | {"nocolumns": {}}


def _odd_arrays(folder: Path) -> None:
    """Files of NumPy's that cannot be used, some of them damaged."""
    x, y = np.ones((6, 2)), np.arange(6) % 2
    np.savez(folder / "hashes.npz", x=x, y=np.array([0, 1, 2**40, 3, 4, 5]))
    np.savez(folder / "complex.npz", x=x.astype(complex), y=y)
    np.savez(folder / "halves.npz", x=x, y=y / 2)
    np.savez(folder / "negative.npz", x=x, y=y - 3)
    np.savez(folder / "norows.npz", x=x[:0], y=y[:0])
    np.savez(folder / "other.npz", first=x, second=y)
    np.savez_compressed(folder / "garbled.npz", x=np.random.default_rng(0).normal(size=(50, 4)), y=np.arange(50) % 2)
    whole = (folder / "garbled.npz").read_bytes()
    (folder / "garbled.npz").write_bytes(whole[:150] + b"\xff" * 400 + whole[550:])
    (folder / "locked.npz").write_bytes(_with_password((folder / "negative.npz").read_bytes()))
    for name, shape in (("header", "((((("), ("lying", "(1000000000000, 64)")):
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
        (folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)


def _with_password(archive: bytes) -> bytes:
    """The bytes of a zip file, each of whose entries says that it is encrypted."""
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        parts = archive.split(mark)
        changed = [part[: flags - 4] + bytes([part[flags - 4] | 1]) + part[flags - 3 :] for part in parts[1:]]
        archive = mark.join([parts[0], *changed])
    return archive


if __name__ == "__main__":
    print(page(), end="")
