package apitype

// ServerSocket is where a ttmon-server listens that is not told another place.
const ServerSocket = "/run/ttmon-server/server.sock"
