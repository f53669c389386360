// Package kube tells the API server of a Kubernetes cluster how the boards of its
// node are doing: as a condition of the node, TenstorrentProblem. It is for ttmond,
// as a view of its snapshots, and used only where it is configured.
package kube

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// conditionType is the condition that is set: True is bad, as of node problems.
const conditionType = "TenstorrentProblem"

// credentials is where a pod finds who it is.
const credentials = "/var/run/secrets/kubernetes.io/serviceaccount"

// Condition is one of a node, as the API server takes it.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // True, False
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastHeartbeatTime  time.Time `json:"lastHeartbeatTime"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Of is the condition of a host: what is critical in it.
func Of(s *model.Snapshot) Condition {
	c := Condition{Type: conditionType, Status: "False", Reason: "DevicesWork", Message: fmt.Sprintf("%d devices, none hung or lost", len(s.Devices))}
	if len(s.Devices) == 1 {
		c.Message = "1 device, not hung or lost"
	}
	var bad []string
	for _, t := range words.Troubles(s) {
		if t.Level < model.Critical {
			continue
		}
		name := t.Name
		if len(t.Devices) > 0 {
			name = "device " + name + " (" + s.Device(t.Devices[0]).BusID + ")"
		}
		if bad = append(bad, name+": "+t.Sentence()); len(bad) == 1 {
			c.Status, c.Reason = "True", cmp.Or(t.Kind.Row().NodeReason, "DeviceProblem")
		}
	}
	if len(bad) > 0 {
		c.Message = strings.Join(bad, "; ")
	}
	return c
}

// Node is a node's entry in the API server.
type Node struct {
	Name   string
	server string
	token  string // file; the kubelet replaces it from time to time
	http   http.Client
}

// InCluster finds the API server as a pod does.
func InCluster(name string) (*Node, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("not running in a pod: KUBERNETES_SERVICE_HOST is not set")
	}
	return NewNode(name, "https://"+net.JoinHostPort(host, port), credentials)
}

// NewNode is a node of the cluster whose API server is at an address, with the
// credentials in dir: token and ca.crt.
func NewNode(name, server, dir string) (*Node, error) {
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificate of the service account (is automountServiceAccountToken off?): %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s/ca.crt has no certificate", dir)
	}
	return &Node{
		Name: name, server: server, token: filepath.Join(dir, "token"),
		http: http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: time.Minute}},
	}, nil
}

// Set sets a condition of the node, and leaves the others as they are.
func (n *Node) Set(ctx context.Context, c Condition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []Condition{c}}})
	if err != nil {
		return err
	}
	token, err := os.ReadFile(n.token)
	if err != nil {
		return fmt.Errorf("reading the token of the service account: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, n.server+"/api/v1/nodes/"+url.PathEscape(n.Name)+"/status", bytes.NewReader(patch))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/strategic-merge-patch+json") // conditions are merged by their type
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := n.http.Do(r)
	if err != nil {
		return fmt.Errorf("setting the condition of node %s: %w", n.Name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("setting the condition of node %s: %s: %s", n.Name, answer.Status, strings.TrimSpace(string(text)))
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 16<<20))
	return nil
}
