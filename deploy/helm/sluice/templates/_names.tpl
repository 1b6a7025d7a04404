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

{{- /* How to connect, for services or appliers: (dict "root" $ "own" .Values.applier). "own" has their secrets. */}}
{{- define "sluice.natsEnv" -}}
{{- $nats := .root.Values.nats }}
- {name: NATS_URL, value: {{ include "sluice.natsUrl" .root | quote }}}
{{- with $nats.tokenSecret }}{{ if .name }}
- {name: SLUICE_TOKEN, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}}
{{- end }}{{ end }}
{{- if .own.credentialsSecret.name }}
- {name: SLUICE_CREDS, value: /etc/sluice/nats/nats.creds}
{{- end }}
{{- if .own.nkeySecret.name }}
- {name: SLUICE_NATS_NKEY, value: /etc/sluice/nats/nkey}
{{- end }}
{{- with .own.userSecret.name }}
- {name: SLUICE_NATS_USER, valueFrom: {secretKeyRef: {name: {{ . }}, key: username}}}
- {name: SLUICE_NATS_PASSWORD_FILE, value: /etc/sluice/nats/password}
{{- end }}
{{- if .own.certificateSecret.name }}
- {name: SLUICE_NATS_CERT, value: /etc/sluice/nats/tls.crt}
- {name: SLUICE_NATS_KEY, value: /etc/sluice/nats/tls.key}
{{- end }}
{{- if $nats.tls.caSecret.name }}
- {name: SLUICE_NATS_CA, value: /etc/sluice/nats/ca.crt}
{{- end }}
{{- if $nats.tls.handshakeFirst }}
- {name: SLUICE_NATS_TLS_FIRST, value: "true"}
{{- end }}
{{- end }}

{{- /* What is mounted at /etc/sluice/nats for that; empty if there is nothing. */}}
{{- define "sluice.natsSources" -}}
{{- with .own.credentialsSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: nats.creds}]}
{{- end }}{{ end }}
{{- with .own.nkeySecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: nkey}]}
{{- end }}{{ end }}
{{- with .own.userSecret.name }}
- secret: {name: {{ . }}, items: [{key: password, path: password}]}
{{- end }}
{{- with .own.certificateSecret.name }}
- secret: {name: {{ . }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- with .root.Values.nats.tls.caSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- end }}

{{- /* A client says in one way who it is: with a second one it would not start. */}}
{{- define "sluice.oneIdentity" -}}
{{- $used := list }}
{{- if .root.Values.nats.tokenSecret.name }}{{ $used = append $used "nats.tokenSecret" }}{{ end }}
{{- $own := .own }}{{ $of := .of }}
{{- range list "credentialsSecret" "nkeySecret" "userSecret" }}
{{- if (index $own .).name }}{{ $used = append $used (printf "%s.%s" $of .) }}{{ end }}
{{- end }}
{{- if gt (len $used) 1 }}{{ fail (printf "%s cannot be used together: keep one of them" (join " and " $used)) }}{{ end }}
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
