{{/* The image that was built with this chart, unless values name another. */}}
{{- define "ttmon.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default (.Chart.AppVersion | replace "+" "_")) }}
{{- end }}
