{{- define "todoke.labels" -}}
app.kubernetes.io/name: todoke
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "todoke.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* points -> POINTS, gateway-bff -> GATEWAY_BFF */}}
{{- define "todoke.prefix" -}}
{{ . | upper | replace "-" "_" }}
{{- end }}

{{/* The enabled services, each with the defaults. */}}
{{- define "todoke.services" -}}
{{- $enabled := dict -}}
{{- range $name, $own := .Values.services -}}
{{- $service := mergeOverwrite (deepCopy $.Values.defaults) $own -}}
{{- if $service.enabled }}{{ $_ := set $enabled $name $service }}{{ end -}}
{{- end -}}
{{ $enabled | toJson }}
{{- end }}

{{/* <SETTING>_FILE for each secret. */}}
{{- define "todoke.secretFiles" -}}
{{- range . }}
- { name: {{ . }}_FILE, value: /run/secrets/todoke/{{ . }} }
{{- end }}
{{- end }}

{{/* A volume with a file per secret. `from` has the Secret and key of each. */}}
{{- define "todoke.secretVolume" -}}
name: secrets
projected:
  defaultMode: 0440
  sources:
    {{- range .names }}
    {{- $ref := required (printf "secrets.%s: name the Secret and the key" .) (get $.from .) }}
    - secret: { name: {{ $ref.name }}, items: [{ key: {{ $ref.key }}, path: {{ . }} }] }
    {{- end }}
{{- end }}

{{- define "todoke.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "todoke.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
