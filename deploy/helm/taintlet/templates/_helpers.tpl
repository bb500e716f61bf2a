{{- define "taintlet.labels" -}}
app.kubernetes.io/name: taintlet
{{- end -}}

{{/*
The image of the agents. A release's chart has the digest of the release's image in an
annotation, and not in the values, which --reuse-values takes from the release before.
*/}}
{{- define "taintlet.image" -}}
{{- with .Values.image -}}
{{- $released := index ($.Chart.Annotations | default dict) "taintlet.dev/image-digest" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else if or .tag (not $released) -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- else -}}
{{ .repository }}:{{ $.Chart.AppVersion }}@{{ $released }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The configuration file. Slots are said once, in evict. */}}
{{- define "taintlet.config" -}}
apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
{{- $config := deepCopy .Values.config }}
{{- $known := list }}
{{- range include "taintlet.conditions" . | fromJsonArray }}
{{- $known = append $known .name }}
{{- end }}
{{- range $config.conditions }}
{{- $known = append $known .type }}
{{- end }}
{{- $wrong := list }}
{{- range $i, $part := prepend ($config.overrides | default list) $config }}
{{- $where := eq $i 0 | ternary "config" (printf "config.overrides[%d]" (sub $i 1)) }}
{{- range $.Files.Get "bounds.json" | fromJsonArray }}
{{- $wrong = append $wrong (include "taintlet.outOfBounds" (dict "value" $part "path" $where "fields" (splitList "." .field) "bound" .)) }}
{{- end }}
{{- end }}
{{- with without $wrong "" }}
{{- fail (join "" . | print "\n") }}
{{- end }}
{{- range prepend ($config.overrides | default list) $config }}
{{- include "taintlet.checkRules" (dict "rules" .rules "known" $known "slots" $.Values.evict.slots) }}
{{- end }}
{{- if .Values.disk.mounts }}
{{- $disk := $config.disk | default dict }}
{{- $_ := set $config "disk" (set $disk "paths" (concat ($disk.paths | default list) .Values.disk.mounts | uniq)) }}
{{- end }}
{{- if .Values.evict.slots }}
{{- $_ := set $config "eviction" (merge (dict "slots" .Values.evict.slots) ($config.eviction | default dict)) }}
{{- end }}
{{- with $config }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
The affinity of values, with the exclusion of virtual nodes, which have no host to look at, in
each of its terms: a Node has to match one term.
*/}}
{{- define "taintlet.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $exclusion := list (dict "key" "type" "operator" "NotIn" "values" (list "virtual-kubelet")) (dict "key" "eks.amazonaws.com/compute-type" "operator" "NotIn" "values" (list "fargate")) -}}
{{- $terms := list -}}
{{- range $required.nodeSelectorTerms | default (list dict) -}}
{{- $terms = append $terms (set . "matchExpressions" (concat (.matchExpressions | default list) $exclusion)) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- toYaml (set $affinity "nodeAffinity" $node) -}}
{{- end -}}

{{/*
The values that are out of their bounds, one a line: those of the fields in value, which is
at path. bounds.json is the agent's list (test/fixtures/bounds.go), which a test writes.
*/}}
{{- define "taintlet.outOfBounds" -}}
{{- $at := . -}}
{{- if not .fields -}}
{{- $size := include "taintlet.size" .value | float64 -}}
{{- $isZero := and .bound.orZero (eq $size 0.0) -}}
{{- if and (not $isZero) (or (lt $size (include "taintlet.size" .bound.low | float64)) (gt $size (include "taintlet.size" .bound.high | float64))) -}}
{{ .path }}: {{ .value }} must be {{ if .bound.orZero }}0 (never), or {{ end }}{{ .bound.low }} to {{ .bound.high }}{{ "\n" }}
{{- end -}}
{{- else -}}
{{- $name := trimSuffix "[]" (first .fields) -}}
{{- $path := printf "%s.%s" .path $name -}}
{{- if not (hasKey .value $name) -}}
{{- else if eq $name (first .fields) -}}
{{- include "taintlet.outOfBounds" (dict "value" (get .value $name) "path" $path "fields" (rest .fields) "bound" .bound) -}}
{{- else -}}
{{- range $i, $entry := get .value $name -}}
{{- include "taintlet.outOfBounds" (dict "value" $entry "path" (printf "%s[%d]" $path $i) "fields" (rest $at.fields) "bound" $at.bound) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* How large a value is: a number, a duration in seconds, or an amount in bytes. */}}
{{- define "taintlet.size" -}}
{{- $units := dict "ns" 1e-9 "us" 1e-6 "µs" 1e-6 "ms" 1e-3 "s" 1.0 "m" 60.0 "h" 3600.0 -}}
{{- $factors := dict "" 1.0 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- $size := 0.0 -}}
{{- if not (kindIs "string" .) -}}
{{- $size = float64 . -}}
{{- else if regexMatch "^([0-9.]+(ns|us|µs|ms|s|m|h))+$" . -}}
{{- range regexFindAll "[0-9.]+[a-zµ]+" . -1 -}}
{{- $unit := regexFind "[a-zµ]+$" . -}}
{{- $size = addf $size (mulf (trimSuffix $unit . | float64) (get $units $unit)) -}}
{{- end -}}
{{- else -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- $size = mulf (trimSuffix $unit . | float64) (get $factors $unit) -}}
{{- end -}}
{{- $size -}}
{{- end -}}

{{/* Refuses rules that the agent would refuse. */}}
{{- define "taintlet.checkRules" -}}
{{- $off := list }}
{{- $on := list }}
{{- range .rules }}
{{- if not (has .condition $.known) }}
{{- fail (printf "config.rules: %s is no condition of taintlet, nor in config.conditions; known are %s" .condition (join ", " $.known)) }}
{{- end }}
{{- if eq .taint.effect "None" }}
{{- $off = append $off .condition }}
{{- else if eq .level "Degraded" }}
{{- $on = append $on .condition }}
{{- end }}
{{- end }}
{{- range .rules }}
{{- if eq .level "Critical" }}
{{- if not $.slots }}
{{- fail "config.rules: a rule for Critical evicts pods and needs a bound: set evict.slots" }}
{{- end }}
{{- if and (has .condition $off) (not (has .condition $on)) }}
{{- fail (printf "config.rules: the rule for %s Critical needs one for %s Degraded, which comes first" .condition .condition) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Who the agent is to the API server. */}}
{{- define "taintlet.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:taintlet
{{- end -}}

{{/*
The Node whose pod asks. The API server puts it into the token of a pod; a token
that is not bound to a pod on a Node has none.
*/}}
{{- define "taintlet.ownNode" -}}
has(request.userInfo.extra) && 'authentication.kubernetes.io/node-name' in request.userInfo.extra ?
request.userInfo.extra['authentication.kubernetes.io/node-name'][0] : ''
{{- end -}}

{{/*
The most elements that a policy loops over; taints.MaxForeignAnnotations is the
same number.
*/}}
{{- define "taintlet.loop" -}}
500
{{- end -}}

{{/*
Variables: who manages which fields of an object, before and after a write. The
API server keeps that in managedFields, and takes what a patch or an update says
there for the truth.
*/}}
{{- define "taintlet.managers" -}}
- name: entriesBefore
  expression: 'oldObject == null ? [] : dyn(oldObject).metadata.?managedFields.orValue([])'
- name: entriesAfter
  expression: dyn(object).metadata.?managedFields.orValue([])
# A write adds an entry of its own, and one into which others are merged.
- name: tooManyManagers
  expression: >-
    size(variables.entriesAfter) > size(variables.entriesBefore) + 2 || size(variables.entriesBefore) > {{ include "taintlet.loop" . }}
- name: managersBefore
  expression: >-
    variables.tooManyManagers ? [] : variables.entriesBefore.map(entry, {
      'id': dyn(entry.?manager.orValue('') + ' ' + entry.?operation.orValue('') + ' ' + entry.?apiVersion.orValue('') + ' ' + entry.?subresource.orValue('')),
      'fields': entry.?fieldsV1.orValue({})})
- name: managersAfter
  expression: >-
    variables.tooManyManagers ? [] : variables.entriesAfter.map(entry, {
      'id': dyn(entry.?manager.orValue('') + ' ' + entry.?operation.orValue('') + ' ' + entry.?apiVersion.orValue('') + ' ' + entry.?subresource.orValue('')),
      'fields': entry.?fieldsV1.orValue({})})
# The API server has ten managers at most, and merges the oldest into this one.
- name: mergesManagers
  expression: size(variables.managersBefore) >= 10
{{- end -}}

{{/*
Validations: a write may add our own fields to our own entries of managedFields
and may take them from others, and changes nothing else there. mine says which
entries are our own. a to d are the names of fields at each level, such as
f:status, f:conditions, the key of a condition, and a field of that condition.
*/}}
{{- define "taintlet.managersStay" -}}
{{- $few := print "<= " (include "taintlet.loop" .) -}}
- expression: >-
    !variables.tooManyManagers && variables.managersAfter.all(now, now in variables.managersBefore ||
      ({{ .mine }} || variables.mergesManagers && now.id.startsWith('ancient-changes Update ') ||
        variables.managersBefore.exists(was, was.id == now.id)) &&
      [{{ .mine }} ? variables.ownFields : dyn({})].all(own,
        [variables.managersBefore.filter(was, was.id == now.id ||
          variables.mergesManagers && now.id.startsWith('ancient-changes Update '))].all(old,
          size(now.fields) {{ $few }} && now.fields.all(a, (a in own || old.exists(was, a in was.fields)) &&
            (old.exists(was, was.fields[?a] == optional.of(now.fields[a])) ||
            size(now.fields[a]) {{ $few }} && now.fields[a].all(b, (b == '.' || own[?a][?b].hasValue() || old.exists(was, was.fields[?a][?b].hasValue())) &&
              (old.exists(was, was.fields[?a][?b] == optional.of(now.fields[a][b])) ||
              size(now.fields[a][b]) {{ $few }} && now.fields[a][b].all(c, (c == '.' || c in own[?a][?b].orValue([]) || old.exists(was, was.fields[?a][?b][?c].hasValue())) &&
                size(now.fields[a][b][c]) {{ $few }} && now.fields[a][b][c].all(d,
                  c in own[?a][?b].orValue([]) && size(now.fields[a][b][c][d]) == 0 &&
                  d in ['.', 'f:type', 'f:status', 'f:reason', 'f:message', 'f:lastHeartbeatTime', 'f:lastTransitionTime'] ||
                  old.exists(was, was.fields[?a][?b][?c][?d] == optional.of(now.fields[a][b][c][d])))))))))))
  reason: Forbidden
  message: taintlet adds nothing to the managedFields of {{ .of }} but its own fields, and nothing where more than {{ include "taintlet.loop" . }} managers are
- expression: >-
    !variables.tooManyManagers && variables.managersBefore.all(was, was in variables.managersAfter ||
      [variables.managersAfter.filter(now, now.id == was.id ||
        variables.mergesManagers && now.id.startsWith('ancient-changes Update '))].all(left,
        size(was.fields) {{ $few }} && was.fields.all(a, left.exists(now, now.fields[?a] == optional.of(was.fields[a])) ||
          size(was.fields[a]) {{ $few }} && was.fields[a].all(b, b == '.' ||
          left.exists(now, now.fields[?a][?b] == optional.of(was.fields[a][b])) || (variables.ownFields[?a][?b].hasValue() ?
          size(was.fields[a][b]) {{ $few }} && was.fields[a][b].all(c, c == '.' || c in variables.ownFields[?a][?b].orValue([]) ||
            left.exists(now, now.fields[?a][?b][?c] == optional.of(was.fields[a][b][c]) ||
              variables.mergesManagers && now.fields[?a][?b][?c].hasValue())) :
          left.exists(now, variables.mergesManagers && now.fields[?a][?b].hasValue()))))))
  reason: Forbidden
  message: taintlet removes nothing from the managedFields of {{ .of }} but its own fields
{{- end -}}

{{/*
The agent's conditions and the keys of their built-in rules, as JSON: HostSchema
in agent/config/schema.go, with which a test compares it. early is the section with
earlyPercent, if it has that.
*/}}
{{- define "taintlet.conditions" -}}
[
  {"name": "MemoryPressure", "key": "node.kubernetes.io/memory-pressure", "early": "memory"},
  {"name": "DiskPressure", "key": "node.kubernetes.io/disk-pressure", "early": "disk"},
  {"name": "PIDPressure", "key": "node.kubernetes.io/pid-pressure", "early": "pid"},
  {"name": "NetworkUnavailable", "key": "node.kubernetes.io/network-unavailable"}
]
{{- end -}}

{{/* The agent's built-in rules for an effect, as JSON. */}}
{{- define "taintlet.builtIn" -}}
{{- $rules := list -}}
{{- range include "taintlet.conditions" . | fromJsonArray -}}
{{- $rules = append $rules (dict "taint" (dict "key" .key "effect" $)) -}}
{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{/* The types of the agent's Node conditions, one a line. */}}
{{- define "taintlet.conditionTypes" -}}
{{- $types := list -}}
{{- range include "taintlet.conditions" . | fromJsonArray -}}
{{- $types = append $types (print "Host" .name) -}}
{{- end -}}
{{- range .Values.config.conditions -}}
{{- $types = append $types (print "Host" .type) -}}
{{- end -}}
{{- $types = append $types "HostRepairNeeded" -}}
{{- $types | join "\n" -}}
{{- end -}}

{{/* The keys of the built-in rules, one a line. */}}
{{- define "taintlet.conditionKeys" -}}
{{- $keys := list -}}
{{- range include "taintlet.conditions" . | fromJsonArray -}}
{{- $keys = append $keys .key -}}
{{- end -}}
{{- $keys | join "\n" -}}
{{- end -}}

{{/* Refuses keys that no rule may use (taints.Reserved in taints/via.go). */}}
{{- define "taintlet.refuseReserved" -}}
{{- $reserved := list "node.kubernetes.io/not-ready" "node.kubernetes.io/unreachable" "node.kubernetes.io/unschedulable" "node.kubernetes.io/out-of-service" "node.cloudprovider.kubernetes.io/uninitialized" -}}
{{- if has .key $reserved -}}
{{- fail (printf "%s: the key %s belongs to the control plane or to administrators" .where .key) -}}
{{- end -}}
{{- end -}}

{{/*
The rules in force on some Node, as JSON: those of config and of its overrides, and the
default rule of each condition for which these have none for Degraded without reasons
(agent/config/defaults.go). An empty list is one: no taints. Effect None asks for no taint.
*/}}
{{- define "taintlet.rules" -}}
{{- $rules := list -}}
{{- range prepend (.Values.config.overrides | default list) .Values.config -}}
{{- $own := hasKey . "rules" | ternary .rules $.Values.config.rules -}}
{{- $ruled := list -}}
{{- range $own -}}
{{- if and (eq .level "Degraded") (not .reasons) (not .severity) -}}
{{- $ruled = append $ruled .condition -}}
{{- end -}}
{{- if ne .taint.effect "None" -}}
{{- include "taintlet.refuseReserved" (dict "where" "config.rules" "key" .taint.key) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- if or $own (not (kindIs "slice" $own)) -}}
{{- range include "taintlet.conditions" $ | fromJsonArray -}}
{{- if not (has .name $ruled) -}}
{{- $key := .key -}}
{{- if eq (include "taintlet.keys" $) "Own" -}}
{{- $key = regexReplaceAll "^.*/" .key (print (include "taintlet.keyPrefix" $) "/") -}}
{{- end -}}
{{- $rules = append $rules (dict "condition" .name "level" "Degraded" "taint" (dict "key" $key "effect" "NoSchedule")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $rules | uniq | toJson -}}
{{- end -}}

{{/*
The pairs of the rules and of their stand-ins (taints.StandInFor in
taints/via.go), one key:effect a line. A stand-in has the key's name under
another prefix and never evicts.
*/}}
{{- define "taintlet.pairs" -}}
{{- $pairs := list -}}
{{- range .rules -}}
{{- $pairs = append $pairs (print .taint.key ":" .taint.effect) -}}
{{- $effect := ternary "NoSchedule" .taint.effect (eq .taint.effect "NoExecute") -}}
{{- $name := regexReplaceAll "^.*/" .taint.key "" -}}
{{- range $.prefixes -}}
{{- $pairs = append $pairs (print . "/" $name ":" $effect) -}}
{{- end -}}
{{- end -}}
{{- $pairs | uniq | join "\n" -}}
{{- end -}}

{{/* Which keys the default rules have, and the prefix of own keys and of stand-ins. */}}
{{- define "taintlet.keys" -}}
{{- .Values.config.keys | default "WellKnown" -}}
{{- end -}}
{{- define "taintlet.keyPrefix" -}}
{{- .Values.config.keyPrefix | default "taintlet.dev" -}}
{{- end -}}

{{- define "taintlet.standInPrefixes" -}}
{{- list (include "taintlet.keyPrefix" .) "taintlet.dev" | uniq | toJson -}}
{{- end -}}

{{/* The prefix of keys that cluster-autoscaler ignores (taints.AutoscalerPrefix). */}}
{{- define "taintlet.autoscalerPrefix" -}}
status-taint.cluster-autoscaler.kubernetes.io
{{- end -}}

{{/* The pair of a condition's early taint, under a prefix (earlyRules in agent/config/defaults.go). */}}
{{- define "taintlet.early" -}}
{{ .prefix }}/{{ regexReplaceAll "^.*/" .key "" }}-early:PreferNoSchedule
{{- end -}}

{{/* Pairs that agents may set and remove, one a line. Early taints have no stand-ins. */}}
{{- define "taintlet.wanted" -}}
{{- $prefixes := include "taintlet.standInPrefixes" . | fromJsonArray -}}
{{- $pairs := include "taintlet.pairs" (dict "rules" (include "taintlet.rules" . | fromJsonArray) "prefixes" $prefixes) | splitList "\n" -}}
{{- range prepend (.Values.config.overrides | default list) .Values.config -}}
{{- $part := . -}}
{{- range include "taintlet.conditions" $ | fromJsonArray -}}
{{- if ((get $part (.early | default "")) | default dict).earlyPercent -}}
{{- $pairs = append $pairs (include "taintlet.early" (dict "prefix" (include "taintlet.keyPrefix" $) "key" .key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- without ($pairs | uniq) "" | join "\n" -}}
{{- end -}}

{{/* Pairs that agents may only remove: Policy.Produces in agent/decide/policy.go, the
start-up taint, and retired ones. */}}
{{- define "taintlet.former" -}}
{{- $prefixes := include "taintlet.standInPrefixes" . | fromJsonArray -}}
{{- $builtIn := concat (include "taintlet.builtIn" "NoSchedule" | fromJsonArray) (include "taintlet.builtIn" "NoExecute" | fromJsonArray) -}}
{{- range .Values.retired -}}
{{- include "taintlet.refuseReserved" (dict "where" "retired" "key" .key) -}}
{{- $builtIn = append $builtIn (dict "taint" .) -}}
{{- end -}}
{{- $former := include "taintlet.pairs" (dict "rules" $builtIn "prefixes" $prefixes) | splitList "\n" -}}
{{- range include "taintlet.conditions" . | fromJsonArray -}}
{{- $former = append $former (regexReplaceAll "^.*/" .key (print (include "taintlet.autoscalerPrefix" $) "/") | printf "%s:NoSchedule") -}}
{{- if .early -}}
{{- $key := .key -}}
{{- range $prefixes -}}
{{- $former = append $former (include "taintlet.early" (dict "prefix" . "key" $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with (.Values.config.startup | default dict).taint -}}
{{- include "taintlet.refuseReserved" (dict "where" "config.startup.taint" "key" .) -}}
{{- $former = append $former (print . ":NoSchedule") -}}
{{- $former = append $former (print . ":NoExecute") -}}
{{- end -}}
{{- $wanted := include "taintlet.wanted" . | splitList "\n" -}}
{{- $only := list -}}
{{- range $former | uniq -}}
{{- if not (has . $wanted) -}}
{{- $only = append $only . -}}
{{- end -}}
{{- end -}}
{{- $only | join "\n" -}}
{{- end -}}

{{/* Lines as a CEL list. They are keys, prefixes and effects, which hold no quotes. */}}
{{- define "taintlet.celList" -}}
[
{{- if . -}}
{{- range $i, $line := splitList "\n" . }}{{ if $i }},{{ end }}
'{{ $line }}'
{{- end -}}
{{- end -}}
]
{{- end -}}

{{/*
The version of the kinds in keep.yaml, or nothing if the cluster does not get it. Where an
administrator has switched it on, Kubernetes 1.34 and 1.35 have v1beta1.
*/}}
{{- define "taintlet.keep" -}}
{{- $served := list -}}
{{- range list "v1" "v1beta1" -}}
{{- if $.Capabilities.APIVersions.Has (printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" .) -}}
{{- $served = append $served . -}}
{{- end -}}
{{- end -}}
{{- if and $served (ne (include "taintlet.keys" .) "Own") -}}
{{- first $served -}}
{{- end -}}
{{- end -}}
