/** Uploads and downloads artifacts in load tests, with plain HTTP requests and little memory. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import type { Target } from '../support/baton.ts'

/** The content of every file is this block, repeated. */
export const BLOCK = Buffer.alloc(1_048_576, 'Baton transfers files. ')
const ARTIFACTS = '/v1/projects/default/artifacts'
const BOUNDARY = 'measured'
const HEAD = Buffer.from(
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="name"\r\n\r\nfile\r\n` +
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n`,
)
const TAIL = Buffer.from(`\r\n--${BOUNDARY}--\r\n`)

export interface Transfers {
  /** Uploads a file of `size` bytes, a multiple of the block size. Returns the artifact's id. */
  upload(size: number): Promise<string>
  /** Downloads an artifact and returns its number of bytes. */
  download(id: string): Promise<number>
  remove(id: string): Promise<void>
  close(): void
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response) text += chunk
  return text
}
/** Returns the response if it has the expected status, and throws otherwise. */
async function expected(response: IncomingMessage, status: number): Promise<IncomingMessage> {
  if (response.statusCode === status) return response
  throw new Error(`answered ${response.statusCode}: ${(await textOf(response)).slice(0, 300)}`)
}

export function transfersOf({ port, key }: Target): Transfers {
  const agent = new Agent({ maxSockets: 1000 })
  const send = async (
    method: string,
    path: string,
    headers: Readonly<Record<string, string | number>> = {},
    write?: (to: ReturnType<typeof request>) => Promise<void>,
  ): Promise<IncomingMessage> => {
    const sent = request({
      port,
      agent,
      method,
      path,
      headers: { authorization: `Bearer ${key}`, ...headers },
    })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    await write?.(sent)
    sent.end()
    const [response] = await answered
    return response
  }
  return {
    upload: async (size) => {
      const headers = {
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
        'content-length': HEAD.length + size + TAIL.length,
      }
      const response = await send('POST', ARTIFACTS, headers, async (to) => {
        to.write(HEAD)
        for (let left = size; left > 0; left -= BLOCK.length)
          if (!to.write(BLOCK)) await once(to, 'drain')
        to.write(TAIL)
      })
      const text = await textOf(await expected(response, 201))
      return String((JSON.parse(text) as { id: unknown }).id)
    },
    download: async (id) => {
      const response = await send('GET', `${ARTIFACTS}/${id}/content`)
      let size = 0
      for await (const chunk of await expected(response, 200)) size += (chunk as Buffer).length
      return size
    },
    remove: async (id) => {
      await textOf(await expected(await send('DELETE', `${ARTIFACTS}/${id}`), 204))
    },
    close: () => agent.destroy(),
  }
}
