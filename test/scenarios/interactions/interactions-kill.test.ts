/**
 * A question that needs two approvals. The node that owns it is killed between the two answers.
 * Neither answer is lost, and together they determine the outcome.
 */
import t from 'tap'
import { listOf, until } from '../support/given.ts'
import { persistent, portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

t.setTimeout(60_000)
t.test(
  'a quorum survives the kill of the node that owns its interaction',
  { timeout: 60_000 },
  async (t) => {
    const it = await processes({ ...hasty, BATON_SHARDS: '2' })
    t.teardown(() => it.stop())
    const [port = 0] = await portsFor(1)
    const doomed = await it.node('shards-a', 'shards')
    await it.node('front', 'gateway,views', port)
    const call = persistent(it, port)
    const P = '/projects/default'
    const people = await Promise.all(
      ['ada', 'bo', 'cleo'].map(async (name) => {
        const {
          body: { id },
        } = await call('POST', `${P}/principals`, { name, role_ids: ['role_operator'] })
        const {
          body: { key },
        } = await call('POST', `${P}/api-keys`, { name, principal_id: id })
        return { id: String(id), key: String(key) }
      }),
    )
    const [ada, bo] = people
    const spec = {
      steps: [
        {
          id: 'approval',
          kind: 'interaction',
          config: {
            protocol: 'request_approval',
            prompt: 'Deploy?',
            targets: people.map(({ id }) => id),
            spec: { mode: 'confirm' },
            resolution_policy: { type: 'quorum', threshold: 2 },
          },
        },
        {
          id: 'silence',
          kind: 'interaction',
          config: {
            protocol: 'request_approval',
            targets: [ada?.id],
            expires_in: '300ms',
            on_expiry: 'continue',
          },
        },
      ],
    }
    const { body: run } = await call('POST', `${P}/runs`, { spec })
    const [question] = listOf((await call('GET', `${P}/interactions?run_id=${run['id']}`)).body)
    const { body: brief } = await call('POST', `${P}/interactions`, {
      kind: 'request_approval',
      title: 'Quick?',
      target_user_ids: [ada?.id],
      expires_at: new Date(Date.now() + 1500).toISOString(),
    })
    const respond = (value: boolean, key = '') =>
      call(
        'POST',
        `${P}/interactions/${question?.['id']}/respond`,
        { value, comment: 'yes' },
        { authorization: `Bearer ${key}` },
      )
    t.match(await respond(true, ada?.key), {
      status: 200,
      body: { status: 'pending', responses: [{ responder_user_id: ada?.id }] },
    })

    await doomed.kill()
    t.comment('the node that owned the run is dead')
    await it.node('shards-b', 'shards')
    t.match(
      await respond(true, ada?.key),
      { status: 200, body: { responses: [{}] } },
      'the first answer is stored once',
    )
    t.match(await respond(true, bo?.key), {
      status: 200,
      body: { status: 'completed', outcome: true, resolved_by: 'quorum' },
    })

    const late = await until(
      () => call('GET', `${P}/interactions/${brief['id']}`),
      ({ body }) => body['status'] !== 'pending',
    )
    t.match(
      late.body,
      { status: 'expired', lifecycle: [{}, { action: 'expired' }] },
      'the interaction expired during the outage',
    )

    const done = await until(
      () => call('GET', `${P}/runs/${run['id']}`),
      ({ body }) => body['status'] !== 'suspended',
    )
    t.match(done.body, {
      status: 'completed',
      result: {
        approval: { status: 'completed', value: true, responder: { user_id: bo?.id } },
        silence: { status: 'expired' },
      },
    })
    const { body: timeline } = await call('GET', `/runs/${run['id']}/events?limit=200`)
    const answers = listOf(timeline).filter(
      ({ event_type, step_key }) =>
        event_type === 'interaction.responded' && step_key === 'approval',
    )
    t.match(
      answers.map(({ payload }) => payload),
      [
        { response: true, responder: { user_id: ada?.id }, comment: 'yes' },
        { response: true, responder: { user_id: bo?.id } },
      ],
    )
    t.equal(listOf(timeline).filter(({ event_type }) => event_type === 'run.completed').length, 1)
    const { body: audit } = await call('GET', `/audit-logs?resource_id=${question?.['id']}`)
    const told = listOf(audit).filter(({ changes }) =>
      JSON.stringify(changes ?? {}).includes('"response"'),
    )
    t.strictSame(
      told.map(({ actor_id, credential_type }) => [actor_id, credential_type]),
      [
        [bo?.id, 'api_key'],
        [ada?.id, 'api_key'],
      ],
    )
  },
)
