/**
 * The timeout that ends the generation of a silent provider. It must fire even if garbage is
 * collected first.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { remoteModel } from '../../../nodes/executor/models/remote.ts'
import { until } from '../../scenarios/support/given.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

t.test(
  'a silent provider or the caller ends the generation, also during garbage collection',
  async (t) => {
    const open = new Set<object>()
    const server = createServer((_, answer) => {
      open.add(answer)
      answer.on('close', () => open.delete(answer))
      answer.writeHead(200, { 'content-type': 'text/event-stream' })
      const choices = [
        { index: 0, delta: { role: 'assistant', content: 'hm' }, finish_reason: null },
      ]
      const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices }
      answer.write(`data: ${JSON.stringify(chunk)}\n\n`)
    })
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const ask = (silence: number, signal: AbortSignal, show: () => void) =>
      remoteModel({
        access: { provider: 'stub', kind: 'openai-compatible', base_url },
        env: {},
        silence,
        now: () => 0,
        spread: () => 0.5,
      })({
        id: 'job_1',
        provider: 'stub',
        model: 'm',
        attempt: 1,
        signal,
        show,
        request: {
          model: 'm',
          messages: [{ role: 'user', content: [{ type: 'text', text: 'well?' }] }],
        },
      })
    for (let round = 0; round < 3; round++) {
      const collecting = setInterval(collectGarbage, 20)
      const caller = new AbortController()
      t.match(await ask(200, caller.signal, () => {}), { error_type: 'provider_timeout' })
      const stop = () => void setTimeout(() => caller.abort(), 100)
      t.match(await ask(60_000, caller.signal, stop), { error_type: 'stopped' })
      clearInterval(collecting)
      await until(
        async () => open.size,
        (count) => count === 0,
      )
    }
    await new Promise((closed) => server.close(closed))
  },
)
