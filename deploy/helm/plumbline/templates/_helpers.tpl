{{- define "plumbline.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}

{{- define "plumbline.labels" -}}
app.kubernetes.io/name: plumbline
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "plumbline.select" -}}
app.kubernetes.io/name: plumbline
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What a pod of any kind has. Takes: root, tag, component, args, stage values, probes. */}}
{{- define "plumbline.pod" -}}
{{- $root := .root -}}
{{- $v := .values -}}
metadata:
  labels:
    {{- include "plumbline.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  annotations:
    checksum/config: {{ include (print $root.Template.BasePath "/config.yaml") $root | sha256sum }}
spec:
  # Longer than shutdown_timeout: the last checkpoints are written.
  terminationGracePeriodSeconds: 60
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with $v.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "plumbline.select" $root | nindent 10 }}
          app.kubernetes.io/component: {{ .component }}
  {{- if and $root.Values.createTopics (not $root.Values.strimzi.topics) }}
  initContainers:
    - name: topics
      {{- include "plumbline.container" (merge (dict "args" (list "topics" "create" "-c" "/etc/plumbline/plumbline.yaml")) .) | nindent 6 }}
  {{- end }}
  containers:
    - name: plumbline
      {{- include "plumbline.container" . | nindent 6 }}
      ports:
        - {name: http, containerPort: 8080}
      {{- $probe := dict "httpGet" (dict "path" "/-/healthy" "port" "http") }}
      {{- $ready := dict "httpGet" (dict "path" "/-/ready" "port" "http") }}
      {{- if $root.Values.http.webConfigSecret }}
      {{- $probe = dict "tcpSocket" (dict "port" "http") }}
      {{- $ready = $probe }}
      {{- end }}
      # HTTP is up once brokers and topics were checked: five minutes for a cluster that comes up at the same time.
      startupProbe: {{- merge (dict "periodSeconds" 5 "failureThreshold" 60) $probe | toYaml | nindent 8 }}
      # All assigned tasks have restored their state: an upgrade goes on to the next pod only then.
      readinessProbe: {{- merge (dict "periodSeconds" 5 "failureThreshold" 3) $ready | toYaml | nindent 8 }}
      # Answers whatever brokers and tasks do: a restart cannot mend those. Three minutes of silence are a hung process.
      livenessProbe: {{- merge (dict "periodSeconds" 30 "failureThreshold" 6 "timeoutSeconds" 5) $probe | toYaml | nindent 8 }}
  volumes:
    - {name: config, configMap: {name: {{ include "plumbline.name" $root }}-config}}
    - {name: tmp, emptyDir: {}}
    {{- with $root.Values.http.webConfigSecret }}
    - {name: web, secret: {secretName: {{ . }}, defaultMode: 0440}}
    {{- end }}
    {{- range $root.Values.secretFiles }}
    - {name: file-{{ .name }}, secret: {secretName: {{ .secret }}, defaultMode: 0440}}
    {{- end }}
    {{- with $root.Values.archive.existingClaim }}
    - {name: archive, persistentVolumeClaim: {claimName: {{ . }}}}
    {{- end }}
    {{- if .ephemeral }}
    - {name: work, emptyDir: {}}
    {{- end }}
{{- end -}}

{{- define "plumbline.container" -}}
{{- $root := .root -}}
{{- $v := .values -}}
image: "{{ ternary $root.Values.image.gpuRepository $root.Values.image.repository (gt (int $v.gpus) 0) }}:{{ $v.tag | default $root.Values.image.tag | default $root.Chart.AppVersion }}"
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
args: {{ toJson .args }}
env:
  # Nine tenths of the limit: the rest is what Go does not count.
  - {name: GOMEMLIMIT, value: {{ printf "%dMiB" (div (mul (int $v.memoryMiB) 9) 10) | quote }}}
  {{- range $root.Values.secretEnv }}
  - name: {{ .name }}
    valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}}
  {{- end }}
resources:
  requests: {cpu: {{ $v.cpu | quote }}, memory: {{ printf "%dMi" (int $v.memoryMiB) | quote }}}
  limits:
    memory: {{ printf "%dMi" (int $v.memoryMiB) | quote }}
    {{- with $v.gpus }}
    nvidia.com/gpu: {{ . }}
    {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: config, mountPath: /etc/plumbline, readOnly: true}
  - {name: work, mountPath: /var/lib/plumbline}
  - {name: tmp, mountPath: /tmp}
  {{- if $root.Values.http.webConfigSecret }}
  - {name: web, mountPath: /run/secrets/web, readOnly: true}
  {{- end }}
  {{- range $root.Values.secretFiles }}
  - {name: file-{{ .name }}, mountPath: /run/secrets/{{ .name }}, readOnly: true}
  {{- end }}
  {{- if $root.Values.archive.existingClaim }}
  - {name: archive, mountPath: /archive}
  {{- end }}
{{- end -}}
