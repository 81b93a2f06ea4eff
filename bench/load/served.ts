/** Runs one part of a benchmark against a separate server. */
import { type Baton, type BatonOptions, startBaton } from '../support/baton.ts'
import { Http } from './http.ts'

/**
 * Starts a server, calls `work`, and stops the server, even if `work` fails.
 * @param connections maximum number of keep-alive connections of the client `http`.
 */
export async function served<T>(
  options: BatonOptions,
  connections: number,
  work: (server: Baton, http: Http) => Promise<T>,
): Promise<T> {
  const server = await startBaton(options)
  const http = new Http(server.port, server.key, connections)
  try {
    return await work(server, http)
  } finally {
    http.close()
    await server.stop()
  }
}
