{{- define "sluice.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sluice.labels" -}}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* Of one component: (dict "root" $ "component" "drain"). These never change, for a Deployment's selector cannot. */}}
{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "sluice.image" -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- /* The services that run, in the order in which a change meets them. */}}
{{- define "sluice.services" -}}
merger validator scheduler drain inventory{{ if .Values.gateway.enabled }} gateway{{ end }}
{{- end }}

{{- /* Those that speak with the API server. */}}
{{- define "sluice.clients" -}}
{{- if eq .Values.drain.strategy "kubernetes" }}drain {{ end }}{{ if eq .Values.inventory.source "kubernetes" }}inventory {{ end }}{{ if .Values.gateway.enabled }}gateway{{ end }}
{{- end }}

{{- define "sluice.natsUrl" -}}
{{- if .Values.nats.embedded.enabled -}}
nats://{{ include "sluice.name" . }}-nats.{{ .Release.Namespace }}.svc:4222
{{- else -}}
{{ required "nats.url is needed, for nats.embedded.enabled is false: nats://host:4222" .Values.nats.url }}
{{- end }}
{{- end }}

{{- define "sluice.natsEnv" -}}
- {name: NATS_URL, value: {{ include "sluice.natsUrl" . | quote }}}
{{- with .Values.nats.tokenSecret }}{{ if .name }}
- {name: SLUICE_TOKEN, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}}
{{- end }}{{ end }}
{{- end }}

{{- define "sluice.streamReplicas" -}}
{{- if not (kindIs "invalid" .Values.nats.streamReplicas) }}{{ .Values.nats.streamReplicas }}{{ else if .Values.nats.embedded.enabled }}{{ .Values.nats.embedded.replicas }}{{ end }}
{{- end }}

{{- define "sluice.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "sluice.webhookSecret" -}}
{{- if eq .Values.webhook.certificate.from "secret" }}{{ required "webhook.certificate.secretName is needed, for webhook.certificate.from is secret" .Values.webhook.certificate.secretName }}{{ else }}{{ include "sluice.name" . }}-webhook{{ end }}
{{- end }}
