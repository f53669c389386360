package kube

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
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

var update = flag.Bool("update", false, "write the golden files anew")

const packaging = "../../../packaging"

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
		t.Errorf("%s is not what comes out now (-update writes it anew): %v\n%s", path, err, got)
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
	if got := strings.Join(kinds, " "); got != "ConfigMap ConfigMap DaemonSet Namespace Service ServiceAccount ServiceMonitor" {
		t.Errorf("the base has %s", got)
	}
	golden(t, "kustomize.yaml", rest)
	check(t, set, false)
}

// With the component, ttmond may set the condition of its node, and nothing else.
func TestKustomizeNodeCondition(t *testing.T) {
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
	text := "resources: [" + relative("base") + "]\ncomponents: [" + relative("node-condition") + "]\n"
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	kinds, _, set := objects(t, kustomize(t, filesys.MakeFsOnDisk(), overlay))
	if !slices.Contains(kinds, "ClusterRole") || !slices.Contains(kinds, "ClusterRoleBinding") {
		t.Errorf("the component has %v", kinds)
	}
	check(t, set, true)
}

func helm(t *testing.T, values map[string]any) []byte {
	t.Helper()
	chart, err := loader.Load(packaging + "/helm/ttmon")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "ttmon", Namespace: "ttmon"}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, name := range slices.Sorted(keys(files)) {
		out = append(append(out, "---\n"...), strings.Trim(files[name], "\n")+"\n"...)
	}
	return out
}

func TestHelm(t *testing.T) {
	kinds, rest, set := objects(t, helm(t, nil))
	slices.Sort(kinds)
	if got := strings.Join(kinds, " "); got != "ConfigMap ConfigMap DaemonSet Service ServiceAccount ServiceMonitor" {
		t.Errorf("the chart has %s", got)
	}
	golden(t, "helm.yaml", rest)
	check(t, set, false)

	kinds, rest, set = objects(t, helm(t, map[string]any{
		"nodeCondition": map[string]any{"enabled": true}, "serviceMonitor": map[string]any{"enabled": false}, "dashboards": map[string]any{"enabled": false},
		"nodeSelector": map[string]any{"tenstorrent.com/board": "true"}, "config": "[history]\nenabled = false",
	}))
	slices.Sort(kinds)
	if got := strings.Join(kinds, " "); got != "ClusterRole ClusterRoleBinding ConfigMap DaemonSet Service ServiceAccount" {
		t.Errorf("with other values it has %s", got)
	}
	golden(t, "helm-condition.yaml", rest)
	check(t, set, true)
	if set.Spec.Template.Spec.NodeSelector["tenstorrent.com/board"] != "true" {
		t.Error("the nodes are not chosen")
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
	for _, name := range []string{"ttmon-node.json", "ttmon-fleet.json"} {
		want, err := os.ReadFile(filepath.Join(packaging, "grafana", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"kubernetes/base", "helm/ttmon/dashboards"} {
			if got, err := os.ReadFile(filepath.Join(packaging, dir, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s/%s is not packaging/grafana's: copy it there (%v)", dir, name, err)
			}
		}
	}
}
