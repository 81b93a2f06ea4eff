/**
 * An embedding server over HTTP, with OpenAI's interface. It returns the vectors of the built-in
 * model for tests.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hashedEmbedding } from '../../../../nodes/executor/embedding/hashed.ts'

export interface EmbeddingServer {
  /** The value of `BATON_MODELS` that configures this server. */
  readonly setting: string
  /** The texts of all requests that were answered with status 200. */
  readonly texts: readonly string[]
  /** The status of the responses; 200 by default. */
  status: number
  close(): Promise<void>
}

export async function embeddingServer(): Promise<EmbeddingServer> {
  const texts: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { input } = JSON.parse(Buffer.concat(chunks).toString()) as { input: string[] }
    const vectors = await hashedEmbedding(input, new AbortController().signal)
    if (it.status === 200) texts.push(...input)
    response.writeHead(it.status, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ data: vectors.map((embedding, index) => ({ index, embedding })) }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const it = {
    texts,
    status: 200,
    setting: JSON.stringify({
      providers: [
        {
          provider: 'local',
          kind: 'openai-compatible',
          base_url: `http://127.0.0.1:${port}/v1`,
          models: [],
        },
      ],
      embedding: { model: 'local/small' },
    }),
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
  return it
}
