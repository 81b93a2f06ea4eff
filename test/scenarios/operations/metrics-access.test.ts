/**
 * `/metrics` requires its own token if one is configured, and can be restricted to the status port.
 */
import t from 'tap'
import { service } from '../../support/service.ts'

const TOKEN = 'a-token-of-the-metrics'
const get = (url: string, token?: string) =>
  fetch(
    `${url}/metrics`,
    token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
  )

t.test('metrics require their own token; an API key is not accepted', async (t) => {
  const s = await service({ BATON_METRICS_TOKEN: TOKEN })
  t.teardown(() => s.stop())
  for (const token of [undefined, 'another', s.key]) {
    const refused = await get(s.url, token)
    t.equal(refused.status, 401)
    t.notMatch(await refused.text(), /baton_/)
  }
  t.match(await (await get(s.url, TOKEN)).text(), /baton_request_seconds/)
})

t.test('metrics can be limited to the status port', async (t) => {
  const s = await service({
    BATON_METRICS: 'status',
    BATON_STATUS_PORT: '0',
    BATON_METRICS_TOKEN: TOKEN,
  })
  t.teardown(() => s.stop())
  t.equal((await get(s.url, TOKEN)).status, 404)
  const status = s.nodes[0]?.status ?? ''
  t.equal((await get(status)).status, 401)
  t.match(await (await get(status, TOKEN)).text(), /baton_request_seconds/)
  t.equal((await fetch(`${status}/readyz`)).status, 200)
  t.equal((await fetch(`${s.url}/readyz`)).status, 200)
})
