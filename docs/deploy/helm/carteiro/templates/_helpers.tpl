{{- define "carteiro.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "carteiro.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "carteiro.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "carteiro.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What all objects of a release have in common, and never change. */}}
{{- define "carteiro.selector" -}}
app.kubernetes.io/name: {{ include "carteiro.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "carteiro.labels" -}}
{{ include "carteiro.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "carteiro.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "carteiro.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "carteiro.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "carteiro.port" -}}
{{- dig "server" "port" 8080 .Values.config | int -}}
{{- end -}}

{{- define "carteiro.claim" -}}
{{- .Values.database.volume.existingClaim | default (include "carteiro.fullname" .) -}}
{{- end -}}

{{/* A value in TOML. Values of Helm have no whole numbers: all are floats. */}}
{{- define "carteiro.toml" -}}
{{- if kindIs "map" . -}}
{ {{- $first := true }}{{ range $key, $value := . }}{{ if not $first }},{{ end }} {{ $key }} = {{ include "carteiro.toml" $value }}{{ $first = false }}{{ end }} }
{{- else if kindIs "slice" . -}}
[{{ range $index, $value := . }}{{ if $index }}, {{ end }}{{ include "carteiro.toml" $value }}{{ end }}]
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}

{{/* config.toml. */}}
{{- define "carteiro.config" -}}
{{- range $section, $keys := .Values.config }}
[{{ $section }}]
{{- range $key, $value := $keys }}
{{ $key }} = {{ include "carteiro.toml" $value }}
{{- end }}
{{ end }}
{{- end -}}

{{/* Secret settings: a list of the setting, the Secret, and its key. */}}
{{- define "carteiro.secretSettings" -}}
{{- $settings := .Values.secrets -}}
{{- if eq .Values.database.engine "postgresql" -}}
{{- $url := .Values.database.urlSecret -}}
{{- $settings = prepend $settings (dict "setting" "database.url" "name" $url.name "key" $url.key) -}}
{{- end -}}
{{- if .Values.keySecret.name -}}
{{- $key := .Values.keySecret -}}
{{- $settings = prepend $settings (dict "setting" "secrets.key" "name" $key.name "key" $key.key) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- define "carteiro.env" -}}
- name: CARTEIRO_CONFIG
  value: /etc/carteiro/config.toml
{{- if eq .Values.database.engine "sqlite" }}
- name: CARTEIRO_DATABASE__URL
  value: sqlite:////data/carteiro.db
{{- end }}
{{- range include "carteiro.secretSettings" . | fromYamlArray }}
- name: CARTEIRO_{{ .setting | upper | replace "." "__" }}_FILE
  value: /run/secrets/carteiro/{{ .setting }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "carteiro.mounts" -}}
- name: config
  mountPath: /etc/carteiro
  readOnly: true
{{- if include "carteiro.secretSettings" . | fromYamlArray }}
- name: secrets
  mountPath: /run/secrets/carteiro
  readOnly: true
{{- end }}
- name: temporary
  mountPath: /tmp
{{- if eq .Values.database.engine "sqlite" }}
- name: data
  mountPath: /data
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The volumes of a pod; `config` is the name of its ConfigMap. */}}
{{- define "carteiro.volumes" -}}
{{- $root := .root -}}
- name: config
  configMap:
    name: {{ .config }}
{{- with include "carteiro.secretSettings" $root | fromYamlArray }}
- name: secrets
  projected:
    # Readable by the group of the process alone.
    defaultMode: 0440
    sources:
      {{- range . }}
      - secret:
          name: {{ .name }}
          items:
            - key: {{ .key | quote }}
              path: {{ .setting }}
      {{- end }}
{{- end }}
- name: temporary
  emptyDir:
    sizeLimit: 64Mi
{{- if eq $root.Values.database.engine "sqlite" }}
- name: data
  persistentVolumeClaim:
    claimName: {{ include "carteiro.claim" $root }}
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What the node and the Job have in common, from the pod's spec on. */}}
{{- define "carteiro.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}
