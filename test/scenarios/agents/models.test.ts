/** Model catalogs: the models configured in the service, and those of connected workers. */
import t from 'tap'
import type { Log } from '../../../gateway/ports.ts'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'

const models = {
  providers: [
    {
      provider: 'acme',
      kind: 'openai-compatible',
      display_name: 'Acme',
      base_url: 'http://127.0.0.1:9/v1',
      key: 'env:SECRET_OF_ACME',
      models: [
        {
          id: 'large',
          label: 'Large',
          context_window_tokens: 128_000,
          recommended: true,
          max_effort: 'high',
        },
      ],
    },
  ],
}
const logged: object[] = []
const note = (fields: object): void => void logged.push(fields)
const log: Log = { debug: note, info: note, warn: note, error: note }
const s = await service({ BATON_MODELS: JSON.stringify(models) }, { log })
t.teardown(() => s.stop())

t.test('the start logs that the key of a provider is not set', async (t) => {
  const event = 'model_key_unavailable'
  const line = await until(
    async () => logged.find((fields) => 'event' in fields && fields.event === event),
    (found) => found !== undefined,
  )
  t.match(line, { provider: 'acme', reason: /variable SECRET_OF_ACME is empty or not set/ })
})

t.test("the catalog lists the service's models without the source of their keys", async (t) => {
  const catalog = await s.ok('catalog.models')
  t.match(catalog, {
    default_model: 'acme/large',
    items: [
      {
        provider: 'acme',
        display_name: 'Acme',
        source: 'platform',
        models: [
          {
            id: 'large',
            provider: 'acme',
            label: 'Large',
            context_window_tokens: 128_000,
            recommended: true,
          },
        ],
      },
      { provider: 'service' },
    ],
  })
  t.notMatch(JSON.stringify(catalog), /SECRET_OF_ACME|127\.0\.0\.1/)
})
t.test('the catalog lists the models of connected workers', async (t) => {
  const list = async () => listOf(await s.ok('catalog.worker_models'))
  t.strictSame(await list(), [])
  const one = await s.worker({
    models: [
      { provider: 'ollama', model: 'llama' },
      { provider: 'ollama', model: 'llama' },
    ],
  })
  const two = await s.worker({
    models: [
      { provider: 'ollama', model: 'llama' },
      { provider: 'ollama', model: 'qwen' },
    ],
  })
  const route = (model: string) => ({ mode: 'worker', provider: 'ollama', model })
  t.strictSame(await list(), [
    { provider: 'ollama', model: 'llama', worker_count: 2, route: route('llama') },
    { provider: 'ollama', model: 'qwen', worker_count: 1, route: route('qwen') },
  ])
  two.close()
  t.strictSame(await until(list, (items) => items.length === 1), [
    { provider: 'ollama', model: 'llama', worker_count: 1, route: route('llama') },
  ])
  one.close()
})
