/** Connects the socket of a worker as the worker library does: it repeats a refusal with 503. */
import WebSocket from 'ws'

/** Maximum number of connection attempts. */
const MAX_ATTEMPTS = 20
/** Milliseconds by which the pause between attempts grows. */
const PAUSE_MS = 50

/**
 * Opens a socket. A gateway answers 503 while it cannot confirm its lease in time, for example on a
 * busy machine.
 * @param prepare adds listeners before the socket is open, so that no frame is missed.
 * @throws the error of the last attempt.
 */
export async function openWorkerSocket(
  address: string,
  key: string,
  prepare: (socket: WebSocket) => void,
): Promise<WebSocket> {
  for (let attempt = 1; ; attempt++) {
    const socket = new WebSocket(address, { headers: { authorization: `Bearer ${key}` } })
    prepare(socket)
    const error = await new Promise<Error | undefined>((done) => {
      socket.once('open', () => done(undefined))
      socket.on('error', done)
    })
    if (!error) return socket
    if (attempt === MAX_ATTEMPTS || !error.message.endsWith('response: 503')) throw error
    await new Promise((resolve) => setTimeout(resolve, attempt * PAUSE_MS))
  }
}
