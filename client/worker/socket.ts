/** The sockets of workers, implemented with the WebSocket library `ws`. */
import WebSocket from 'ws'
import { sizes } from '../../protocol/workers/socket.ts'
import type { Dial } from './ports.ts'

/** Timeout of an upgrade in milliseconds. */
const HANDSHAKE_TIMEOUT_MS = 10_000
/**
 * Milliseconds in which the service must confirm a close. Otherwise, a socket without a peer would
 * keep the process alive for 30 s.
 */
const CLOSE_TIMEOUT_MS = 1000

/**
 * Opens a socket without compression. Binary messages are ignored. A message above the frame limit
 * ends the connection.
 */
export const dial: Dial = (url, headers, events) => {
  const socket = new WebSocket(url, {
    headers,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    maxPayload: sizes.frame,
    perMessageDeflate: false,
  })
  let open = false
  let over = false
  const refused = (status: number, reason: string) => {
    if (over) return
    over = true
    events.refused(status, reason)
  }
  let reason = 'the connection was lost'
  socket.on('open', () => {
    open = true
    events.opened()
  })
  socket.on('unexpected-response', (request, answer) => {
    refused(answer.statusCode ?? 0, answer.statusMessage ?? '')
    answer.resume()
    request.destroy()
  })
  socket.on('error', (error: Error & { code?: string }) => {
    reason = error.message || error.code || reason
    if (!open) refused(0, reason)
  })
  socket.on('message', (data, isBinary) => {
    if (!isBinary) events.frame(String(data))
  })
  socket.on('ping', () => events.alive())
  socket.on('pong', () => events.alive())
  socket.on('close', (code, text) => {
    if (!open) return refused(0, reason)
    if (over) return
    over = true
    events.closed(code, String(text) || reason)
  })
  return {
    send: (text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(text)
    },
    drained: () => socket.bufferedAmount === 0,
    ping: () => {
      if (socket.readyState === WebSocket.OPEN) socket.ping()
    },
    close: (code) => {
      socket.close(code)
      setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS).unref()
    },
    drop: () => {
      over = true
      socket.terminate()
    },
  }
}
