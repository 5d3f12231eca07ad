{{- define "documind.name" -}}
{{- if contains "documind" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-documind" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels of an object: (list $ component). */}}
{{- define "documind.labels" -}}
{{ include "documind.selector" . }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{- define "documind.selector" -}}
app.kubernetes.io/name: documind
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "documind.secret" -}}
{{ required "existingSecret: name a Secret of yours; values.yaml lists its keys" .Values.existingSecret }}
{{- end }}

{{/* A variable from a key of the Secret: (list $ key optional). */}}
{{- define "documind.fromSecret" -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef:
      name: {{ include "documind.secret" (index . 0) }}
      key: {{ index . 1 }}
      optional: {{ index . 2 }}
{{- end }}

{{/* Addresses of every node of the own Qdrant. */}}
{{- define "documind.qdrantNodes" -}}
{{- $name := include "documind.name" . -}}
{{- $nodes := list -}}
{{- range $i := until (int .Values.qdrant.replicas) -}}
{{- $nodes = append $nodes (printf "http://%s-qdrant-%d.%s-qdrant:6333" $name $i $name) -}}
{{- end -}}
{{ join "," $nodes }}
{{- end }}

{{/* Where the engines are: what every process of ours needs. */}}
{{- define "documind.engines" -}}
{{- $name := include "documind.name" . -}}
{{- if .Values.postgresql.own }}
{{ include "documind.fromSecret" (list $ "POSTGRES_PASSWORD" false) }}
- name: DATABASE_URL
  value: postgresql://documind:$(POSTGRES_PASSWORD)@{{ $name }}-postgresql:5432/documind
{{- else }}
{{ include "documind.fromSecret" (list $ "DATABASE_URL" false) }}
{{- end }}
- name: SEARCH_URL
  value: {{ if .Values.qdrant.own }}{{ include "documind.qdrantNodes" . }}{{ else }}{{ required "qdrant.url: the address of your Qdrant, or qdrant.own: true" .Values.qdrant.url }}{{ end }}
- name: SEARCH_REPLICAS
  value: {{ .Values.qdrant.copies | quote }}
- name: ORIGINALS_URL
  value: {{ if .Values.seaweedfs.own }}s3://documind/originals?endpoint=http://{{ $name }}-seaweedfs:8333{{ else }}{{ required "seaweedfs.url: s3://BUCKET/PREFIX of your object store, or seaweedfs.own: true" .Values.seaweedfs.url }}{{ end }}
{{ include "documind.fromSecret" (list $ "SEARCH_API_KEY" true) }}
{{ include "documind.fromSecret" (list $ "AWS_ACCESS_KEY_ID" false) }}
{{ include "documind.fromSecret" (list $ "AWS_SECRET_ACCESS_KEY" false) }}
{{- end }}

{{/* Everything an API server or a worker reads. */}}
{{- define "documind.environment" -}}
{{- $name := include "documind.name" . -}}
{{ include "documind.engines" . }}
{{ include "documind.fromSecret" (list $ "API_KEY" true) }}
{{- range .Values.secretSettings }}
{{ include "documind.fromSecret" (list $ . false) }}
{{- end }}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: TRUSTED_HOSTS
  value: {{ printf "localhost,$(POD_IP),%s,%s.%s,%s.%s.svc" $name $name .Release.Namespace $name .Release.Namespace }}
    {{- if .Values.ingress.enabled }},{{ required "ingress.host: the name of the Ingress" .Values.ingress.host }}{{ end }}
    {{- range .Values.trustedHosts }},{{ . }}{{ end }}
- name: LOG_JSON
  value: {{ dig "LOG_JSON" "true" .Values.settings | toString | quote }}
{{- range $key, $value := omit .Values.settings "LOG_JSON" }}
- name: {{ $key }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- define "documind.image" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* What no pod of ours needs is taken away. */}}
{{- define "documind.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "documind.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The two places that a pod writes to. */}}
{{- define "documind.volumes" -}}
- name: data
  emptyDir:
    sizeLimit: {{ .Values.scratch }}
- name: tmp
  emptyDir:
    sizeLimit: 2Gi
{{- end }}

{{- define "documind.mounts" -}}
- name: data
  mountPath: /var/lib/documind
- name: tmp
  mountPath: /tmp
{{- end }}

{{/* Pods of one kind on different machines where there are several: (list $ component). */}}
{{- define "documind.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "documind.selector" . | nindent 6 }}
{{- end }}

{{/* Nodes of the own Qdrant before what makes collections in them. */}}
{{- define "documind.waits" -}}
{{- if .Values.qdrant.own }}
initContainers:
  - name: search-nodes
    {{- include "documind.image" . | nindent 4 }}
    command: [python, -c]
    args:
      - |
        import sys, time, urllib.request
        for node in sys.argv[1].split(","):
            while True:
                try:
                    urllib.request.urlopen(node + "/readyz", timeout=3)
                    break
                except OSError as error:
                    print(node, error, flush=True)
                    time.sleep(3)
      - {{ include "documind.qdrantNodes" . }}
    resources:
      requests: { cpu: 10m, memory: 64Mi }
      limits: { memory: 256Mi }
    securityContext:
      {{- include "documind.containerSecurity" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* The claim of a StatefulSet: its values. */}}
{{- define "documind.claim" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ .storage }}
{{- end }}
