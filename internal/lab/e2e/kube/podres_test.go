package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/ttmon/ttmon/internal/source/podres"
)

// kubelet is one that answers with what a test gives it.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	answer *podresources.ListPodResourcesResponse
	err    error
}

func (k *kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return k.answer, k.err
}

// serve is a server with the kubelet's own code; it returns a client of ours.
func serve(t *testing.T, k *kubelet) *podres.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(s, k)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return podres.New(path)
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Device plugins and DRA, as the kubelet reports them.
func TestList(t *testing.T) {
	c := serve(t, &kubelet{answer: &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
		{Name: "llama-0", Namespace: "ml", Containers: []*podresources.ContainerResources{
			{
				Name: "serve", CpuIds: []int64{1, 2},
				Devices: []*podresources.ContainerDevices{{
					ResourceName: "tenstorrent.com/n300", DeviceIds: []string{"0000:01:00.0"},
					Topology: &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: 1}}},
				}},
			},
			{
				Name: "side",
				DynamicResources: []*podresources.DynamicResource{{ClaimName: "c", ClaimNamespace: "ml", ClaimResources: []*podresources.ClaimResource{{
					DriverName: "tenstorrent.com", PoolName: "node1", DeviceName: "tt-3", CdiDevices: []*podresources.CDIDevice{{Name: "tenstorrent.com/card=3"}},
				}}}},
			},
		}},
		{Name: "idle", Namespace: "default"},
	}}})
	got, err := c.List(limited(t))
	want := "[{ml llama-0 serve tenstorrent.com/n300 [0000:01:00.0]} {ml llama-0 side tenstorrent.com [tenstorrent.com/card=3 tt-3]}]"
	if err != nil || fmt.Sprint(got) != want && fmt.Sprint(got) != strings.ReplaceAll(want, "[tenstorrent.com/card=3 tt-3]", "[tt-3 tenstorrent.com/card=3]") {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.List(limited(t)); err != nil { // over the same connection
		t.Error(err)
	}
}

// A node full of pods, in many frames of HTTP/2.
func TestLargeAnswer(t *testing.T) {
	var r podresources.ListPodResourcesResponse
	for i := range 2000 {
		r.PodResources = append(r.PodResources, &podresources.PodResources{Name: fmt.Sprintf("pod-%d-%s", i, strings.Repeat("x", 200)), Namespace: "ns", Containers: []*podresources.ContainerResources{
			{Name: "c", Devices: []*podresources.ContainerDevices{{ResourceName: "r", DeviceIds: []string{"a", "b"}}}},
		}})
	}
	got, err := serve(t, &kubelet{answer: &r}).List(limited(t))
	if err != nil || len(got) != 4000 || got[3999].Names[0] != "b" {
		t.Errorf("%d claims, %v", len(got), err)
	}
}

// Errors are reported, and none becomes an empty answer.
func TestErrors(t *testing.T) {
	if _, err := serve(t, &kubelet{err: errors.New("the kubelet's own words: 100 %")}).List(limited(t)); err == nil || !strings.Contains(err.Error(), "the kubelet's own words: 100 %") {
		t.Errorf("an error of the kubelet: %v", err)
	}
	if _, err := podres.New(filepath.Join(t.TempDir(), "none.sock")).List(limited(t)); err == nil {
		t.Error("no kubelet, and no error")
	}
	path := filepath.Join(t.TempDir(), "kubelet.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer() // an older one, without the service
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	if _, err := podres.New(path).List(limited(t)); err == nil || !strings.Contains(err.Error(), "12") {
		t.Errorf("a kubelet without the service: %v", err)
	}
}
