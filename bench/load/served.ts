/** Runs a benchmark's part against a server of its own, with connections for its requests. */
import { type Baton, type BatonOptions, startBaton } from '../support/baton.ts'
import { Http } from './http.ts'

/**
 * Starts a server, does the work, and stops the server, also after a failure.
 * @param connections number of keep-alive connections of the client that the work gets.
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
