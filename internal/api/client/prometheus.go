package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Prometheus asks an engine that speaks Prometheus's API, over HTTP or HTTPS:
// a Prometheus, Thanos, Mimir or VictoriaMetrics.
type Prometheus struct {
	base  *url.URL
	token string
}

// NewPrometheus checks the address. A user and password in it are sent as
// basic authentication, token as a bearer token.
func NewPrometheus(address, token string) (*Prometheus, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not an address like http://prometheus:9090", address)
	}
	if strings.ContainsAny(token, "\r\n") {
		return nil, fmt.Errorf("the token has a line break in it")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Prometheus{u, token}, nil
}

// Host is the address of the server, without secrets.
func (p *Prometheus) Host() string { return p.base.Host }

// Query asks for the answer as of now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	target := p.base.Path + "/api/v1/query?" + url.Values{"query": {expr}}.Encode()
	status, body, err := p.get(ctx, target)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.base.Host, err)
	}
	if status == 404 && !strings.HasSuffix(p.base.Path, "/prometheus") {
		return nil, fmt.Errorf("%s has no Prometheus API at this path; a ttmon-server has it at %s://%s%s/prometheus", p.base.Host, p.base.Scheme, p.base.Host, p.base.Path)
	}
	if status != 200 && !strings.HasPrefix(strings.TrimSpace(string(body)), "{") {
		return nil, fmt.Errorf("%s answers %d: %s", p.base.Host, status, strconv.Quote(string(body[:min(len(body), 80)])))
	}
	list, err := parseSeries(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.base.Host, err)
	}
	return list, nil
}

// HostLabel finds the label that distinguishes hosts: host, which remote
// write adds, or instance, which a scrape does.
func (p *Prometheus) HostLabel(ctx context.Context) (string, error) {
	for _, label := range []string{"host", "instance"} {
		list, err := p.Query(ctx, `count(tenstorrent_devices{`+label+`!=""})`)
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			return label, nil
		}
	}
	return "", fmt.Errorf("%s has no tenstorrent_devices with a label host or instance: does it scrape a ttmond, or receive its remote write?", p.base.Host)
}

func (p *Prometheus) get(ctx context.Context, target string) (status int, body []byte, err error) {
	host, port := p.base.Hostname(), p.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.base.Scheme]
	}
	var conn net.Conn
	if p.base.Scheme == "https" {
		d := tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
		conn, err = d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	}
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return 0, nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	head := "GET " + target + " HTTP/1.1\r\nHost: " + p.base.Host + "\r\nConnection: close\r\nAccept: application/json\r\n"
	if u := p.base.User; u != nil {
		password, _ := u.Password()
		head += "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)) + "\r\n"
	} else if p.token != "" {
		head += "Authorization: Bearer " + p.token + "\r\n"
	}
	if _, err := conn.Write([]byte(head + "\r\n")); err != nil {
		return 0, nil, err
	}
	r, err := readResponse(bufio.NewReaderSize(conn, 64<<10))
	return r.status, r.body, err
}
