package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base.Scheme+"://"+p.base.Host+target, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Accept", "application/json")
	if u := p.base.User; u != nil {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	} else if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	t := http.Transport{DisableKeepAlives: true}
	answer, err := t.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	body, err = readBody(answer)
	return answer.StatusCode, body, err
}
