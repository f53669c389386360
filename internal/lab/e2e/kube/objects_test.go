package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"golang.org/x/crypto/bcrypt"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const packaging = "../../../../packaging"

// golden compares what is applied to a cluster with what a person has read. The
// dashboards, which are generated elsewhere, are left out.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%s is not what comes out now (make update rewrites it): %v\n%s", path, err, got)
	}
}

// types are all that our objects may be.
func typed(kind string) any {
	switch kind {
	case "Namespace":
		return new(core.Namespace)
	case "ServiceAccount":
		return new(core.ServiceAccount)
	case "ConfigMap":
		return new(core.ConfigMap)
	case "Secret":
		return new(core.Secret)
	case "Service":
		return new(core.Service)
	case "DaemonSet":
		return new(apps.DaemonSet)
	case "ClusterRole":
		return new(rbac.ClusterRole)
	case "ClusterRoleBinding":
		return new(rbac.ClusterRoleBinding)
	case "ServiceMonitor":
		return new(monitoring.ServiceMonitor)
	}
	return nil
}

// objects decodes a stream strictly, and returns the kinds, and the stream without
// the dashboards.
func objects(t *testing.T, stream []byte) (kinds []string, rest []byte, set *apps.DaemonSet) {
	t.Helper()
	for r := utilyaml.NewYAMLReader(newReader(stream)); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return kinds, rest, set
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind == "" {
			continue
		}
		object := typed(head.Kind)
		if object == nil {
			t.Fatalf("what is a %s?", head.Kind)
		}
		if err := yaml.UnmarshalStrict(doc, object); err != nil {
			t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		kinds = append(kinds, head.Kind)
		if d, ok := object.(*apps.DaemonSet); ok {
			set = d
		}
		if head.Metadata.Name != "ttmon-dashboards" {
			rest = append(append(rest, "---\n"...), bytes.TrimLeft(doc, "-\n")...)
		}
	}
}

func kustomize(t *testing.T, files filesys.FileSystem, dir string) []byte {
	t.Helper()
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestKustomize(t *testing.T) {
	kinds, rest, set := objects(t, kustomize(t, filesys.MakeFsOnDisk(), packaging+"/kubernetes/base"))
	slices.Sort(kinds)
	if got := strings.Join(kinds, " "); got != "ConfigMap ConfigMap DaemonSet Namespace Service ServiceAccount" {
		t.Errorf("the base has %s", got)
	}
	golden(t, "kustomize.yaml", rest)
	check(t, set, false)
	checkImages(t, set, "ttmon:"+appVersion(t))
}

// With the components, ttmon-server may set the condition of its node, and nothing
// else, and the Prometheus operator finds it.
func TestKustomizeComponents(t *testing.T) {
	dir, err := filepath.Abs(packaging + "/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay")
	if err := os.MkdirAll(overlay, 0o755); err != nil {
		t.Fatal(err)
	}
	relative := func(name string) string {
		r, err := filepath.Rel(overlay, filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text := "resources: [" + relative("base") + "]\ncomponents: [" + relative("node-condition") + ", " + relative("prometheus-operator") + "]\n" +
		"images: [{name: ttmon, newName: registry.example/ttmon}]\n"
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	kinds, _, set := objects(t, kustomize(t, filesys.MakeFsOnDisk(), overlay))
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "ServiceMonitor"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no %s in %v", kind, kinds)
		}
	}
	check(t, set, true)
	checkImages(t, set, "registry.example/ttmon:"+appVersion(t))
}

const chartDir = packaging + "/helm/ttmon"

// appVersion is what the chart says it was built with.
func appVersion(t *testing.T) string {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c.Metadata.AppVersion
}

// renderChart returns the objects of the chart and its notes. Values that the
// chart's schema refuses are an error.
func renderChart(values map[string]any) (objects []byte, notes string, err error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, "", err
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "ttmon", Namespace: "ttmon"}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, "", err
	}
	const notesFile = "ttmon/templates/NOTES.txt"
	for _, name := range slices.Sorted(keys(files)) {
		if text := strings.Trim(files[name], "\n"); text != "" && name != notesFile {
			objects = append(append(objects, "---\n"...), text+"\n"...)
		}
	}
	return objects, files[notesFile], nil
}

func helm(t *testing.T, values map[string]any) []byte {
	t.Helper()
	out, _, err := renderChart(values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type object = map[string]any

func TestHelm(t *testing.T) {
	kinds, rest, set := objects(t, helm(t, nil))
	slices.Sort(kinds)
	if got := strings.Join(kinds, " "); got != "ConfigMap ConfigMap DaemonSet Service ServiceAccount" {
		t.Errorf("the chart has %s", got)
	}
	golden(t, "helm.yaml", rest)
	check(t, set, false)
	checkImages(t, set, "ttmon:"+appVersion(t))

	kinds, rest, set = objects(t, helm(t, object{
		"nodeCondition": object{"enabled": true}, "serviceMonitor": object{"enabled": true, "labels": object{"release": "prometheus"}},
		"dashboards": object{"enabled": false}, "image": object{"repository": "registry.example/ttmon", "tag": "1.2.3"}, "imagePullSecrets": []any{"registry"},
		"nodeSelector": object{"tenstorrent.com/board": "true"}, "config": "[history]\nenabled = false",
	}))
	slices.Sort(kinds)
	if got := strings.Join(kinds, " "); got != "ClusterRole ClusterRoleBinding ConfigMap DaemonSet Service ServiceAccount ServiceMonitor" {
		t.Errorf("with other values it has %s", got)
	}
	golden(t, "helm-condition.yaml", rest)
	check(t, set, true)
	checkImages(t, set, "registry.example/ttmon:1.2.3")
	if set.Spec.Template.Spec.NodeSelector["tenstorrent.com/board"] != "true" {
		t.Error("the nodes are not chosen")
	}
}

// With a password the chart makes the Secret, with a hash that fits it.
func TestHelmSecret(t *testing.T) {
	stream := helm(t, object{"web": object{"password": "it's 'so'", "username": "anna"}})
	i := bytes.Index(stream, []byte("kind: Secret"))
	if i < 0 {
		t.Fatal("no Secret")
	}
	doc := append([]byte("apiVersion: v1\n"), stream[i:]...)
	if end := bytes.Index(doc, []byte("\n---")); end > 0 {
		doc = doc[:end]
	}
	var secret core.Secret
	if err := yaml.UnmarshalStrict(doc, &secret); err != nil {
		t.Fatal(err)
	}
	var web struct {
		Users map[string]string `json:"basic_auth_users"`
	}
	if err := yaml.UnmarshalStrict([]byte(secret.StringData["web.yml"]), &web); err != nil {
		t.Fatal(err)
	}
	if secret.StringData["password"] != "it's 'so'" || secret.StringData["username"] != "anna" {
		t.Errorf("%v", secret.StringData)
	}
	if err := bcrypt.CompareHashAndPassword([]byte(web.Users["anna"]), []byte("it's 'so'")); err != nil {
		t.Error(err)
	}
}

// A misspelt value is refused, not ignored.
func TestHelmSchema(t *testing.T) {
	for name, values := range map[string]object{
		"unknown":      {"nodeCondtion": object{"enabled": true}},
		"unknown deep": {"serviceMonitor": object{"enable": true}},
		"not a bool":   {"dashboards": object{"enabled": "yes"}},
		"tag":          {"image": object{"tag": "0.1.0+3"}},
		"interval":     {"serviceMonitor": object{"interval": "15"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := renderChart(values); err == nil {
				t.Error("was not refused")
			}
		})
	}
}

// The notes name the steps that are left, with the names of this release.
func TestHelmNotes(t *testing.T) {
	_, with, err := renderChart(object{"web": object{"password": "x"}, "serviceMonitor": object{"enabled": true}})
	if err != nil {
		t.Fatal(err)
	}
	_, without, err := renderChart(nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(with, "hash-password") || !strings.Contains(with, "serviceMonitorSelector") {
		t.Errorf("with a password:\n%s", with)
	}
	for _, want := range []string{"hash-password prometheus", "create secret generic ttmond-web", "serviceMonitor.enabled=true", "ttmon:" + appVersion(t), "-n ttmon exec ds/ttmond"} {
		if !strings.Contains(without, want) {
			t.Errorf("no %q:\n%s", want, without)
		}
	}
}

// README's table of values has every value of values.yaml, and the schema knows it.
func TestHelmValues(t *testing.T) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(chartDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Properties object }
	}
	if err := json.Unmarshal(chart.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for group, v := range chart.Values {
		if _, ok := schema.Properties[group]; !ok || !bytes.Contains(readme, []byte("`"+group)) {
			t.Errorf("%s is not in the schema or the README", group)
		}
		if group == "resources" || group == "nodeSelector" {
			continue
		}
		inner, _ := v.(object)
		for key := range inner {
			if _, ok := schema.Properties[group].Properties[key]; !ok || !bytes.Contains(readme, []byte("."+key+"`")) {
				t.Errorf("%s.%s is not in the schema or the README", group, key)
			}
		}
	}
}

// checkImages holds what the pods run against what was built.
func checkImages(t *testing.T, set *apps.DaemonSet, want string) {
	t.Helper()
	pod := set.Spec.Template.Spec
	for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
		if c.Image != want {
			t.Errorf("%s runs %s, not %s", c.Name, c.Image, want)
		}
	}
}

// check looks at what the container is given, which is what docs and doctor say it
// needs.
func check(t *testing.T, set *apps.DaemonSet, condition bool) {
	t.Helper()
	if set == nil {
		t.Fatal("no DaemonSet")
	}
	pod := set.Spec.Template.Spec
	named := func(name string) core.Container {
		i := slices.IndexFunc(pod.Containers, func(c core.Container) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("there is no container %s", name)
		}
		return pod.Containers[i]
	}
	c, server := named("ttmond"), named("ttmon-server")
	if s := server.SecurityContext; !*s.RunAsNonRoot || len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("ttmon-server has rights: %+v", s)
	}
	for _, m := range server.VolumeMounts {
		if m.Name == "host" || m.Name == "state" || m.Name == "run" && !m.ReadOnly {
			t.Errorf("ttmon-server gets %+v", m)
		}
	}
	if !pod.HostPID || c.SecurityContext.Privileged != nil || !slices.Equal(c.SecurityContext.Capabilities.Add, []core.Capability{"SYS_PTRACE", "DAC_READ_SEARCH", "BPF", "PERFMON"}) {
		t.Errorf("hostPID %v, %+v", pod.HostPID, c.SecurityContext)
	}
	if *pod.AutomountServiceAccountToken != condition || slices.Contains(server.Args, "--node-condition") != condition {
		t.Errorf("token %v, arguments %v", *pod.AutomountServiceAccountToken, server.Args)
	}
	for _, m := range c.VolumeMounts {
		if m.Name == "host" && (!m.ReadOnly || m.MountPropagation == nil || *m.MountPropagation != core.MountPropagationHostToContainer) {
			t.Errorf("the host is mounted as %+v", m)
		}
	}
}

// The dashboards that are applied are those that are generated.
func TestDashboards(t *testing.T) {
	for by, stream := range map[string][]byte{
		"kustomize": kustomize(t, filesys.MakeFsOnDisk(), packaging+"/kubernetes/base"),
		"helm":      helm(t, nil),
	} {
		t.Run(by, func(t *testing.T) {
			applied := dashboards(t, stream)
			for _, name := range []string{"ttmon-node.json", "ttmon-fleet.json"} {
				want, err := os.ReadFile(filepath.Join(packaging, "grafana", name))
				if err != nil {
					t.Fatal(err)
				}
				if strings.TrimSpace(applied[name]) != strings.TrimSpace(string(want)) {
					t.Errorf("%s is not packaging/grafana's: %d bytes, want %d", name, len(applied[name]), len(want))
				}
			}
			if len(applied) != 2 {
				t.Errorf("%d files", len(applied))
			}
		})
	}
}

// dashboards are the files of the ConfigMap that Grafana's sidecar reads.
func dashboards(t *testing.T, stream []byte) map[string]string {
	t.Helper()
	for r := utilyaml.NewYAMLReader(newReader(stream)); ; {
		doc, err := r.Read()
		if err != nil {
			t.Fatalf("no dashboards: %v", err)
		}
		var m core.ConfigMap
		if err := yaml.Unmarshal(doc, &m); err == nil && m.Name == "ttmon-dashboards" {
			return m.Data
		}
	}
}
