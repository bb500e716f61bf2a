#!/bin/bash -eu
# Builds the fuzz tests as libFuzzer programs, as OSS-Fuzz runs this file: in the root of a
# clone. Untried: no OSS-Fuzz has run it yet.

# The builder compiles the tests of a folder into its package. It knows no package beside it.
grep -rlE '^package [a-z]+_test$' --include='*_test.go' . | xargs rm -f

go get github.com/AdamKorcz/go-118-fuzz-build/testing

# build FOLDER TEST makes one program. The committed corpora are no seeds for it: libFuzzer
# reads another format.
build() { compile_native_go_fuzzer_v2 "github.com/taintlet/taintlet/$1" "$2" "$(tr '/' '_' <<<"$1")_$2"; }

build agent/config FuzzConfiguration
build agent/decide FuzzStatus
build agent/fleet FuzzChoose
build agent/fleet FuzzHeard
build agent/fleet FuzzSlice
build agent/fleet/dnspods FuzzWhere
build agent/reported FuzzCondition
build agent/serve FuzzRequest
build cmd/kubectl-taintlet/installation FuzzChangedByHand
build cmd/kubectl-taintlet/installation FuzzRelease
build cmd/kubectl-taintlet/status FuzzShown
build cmd/terminal FuzzClean
build probes FuzzLevel
build probes/consumers FuzzGroups
build probes/consumers FuzzShared
build probes/consumers FuzzStat
build probes/disk FuzzMounts
build probes/disk FuzzStatfs
build probes/memory FuzzParseEvictableARC
build probes/memory FuzzReadMeminfo
build probes/memory FuzzReclaims
build probes/network/ask FuzzIsAnswer
build probes/network/ask FuzzParseAnswer
build probes/network/ask FuzzParseDrops
build probes/network/ask FuzzParseRoute
build probes/network/ask FuzzResolvConf
build probes/pid FuzzParseCount
build probes/pid FuzzParseLoadavgTasks
build probes/pressure FuzzParsePressure
build taints FuzzHeldKeys
build taints FuzzMessage
build taints FuzzPair
build taints/apiserver FuzzAPIServer
build taints/apiserver FuzzNodeOf
build taints/apiserver FuzzRetryAfter

# Not built, because their package is one beside the folder's own, or package main:
# agent/decide FuzzHeld
# agent/decide FuzzNode
# agent/decide FuzzPaused
# agent/decide FuzzRecord
