{{- define "galatea.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "galatea.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "galatea.gatewaySelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "galatea.labels" -}}
{{ include "galatea.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "galatea.keysSecret" -}}
{{ .Values.keys.existingSecret | default (printf "%s-keys" (include "galatea.name" .)) }}
{{- end }}

{{- define "galatea.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "galatea.podsFile" -}}
{{- $values := omit .Values.instances "inPods" }}
{{- $image := dict "image" (include "galatea.image" .) "pullPolicy" .Values.image.pullPolicy "pullSecrets" .Values.image.pullSecrets }}
{{- merge (dict "platform" (include "galatea.name" .)) $image $values | toPrettyJson }}
{{- end }}
