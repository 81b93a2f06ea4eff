/** Connects the socket of a worker as the worker library does: it repeats a refusal with 503. */
import WebSocket from 'ws'

/** Maximum number of connections that are tried, and the growth of the pause between them in ms. */
const [TRIES, PAUSE] = [20, 50]

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
    if (attempt === TRIES || !error.message.endsWith('response: 503')) throw error
    await new Promise((resolve) => setTimeout(resolve, attempt * PAUSE))
  }
}
