/**
 * The key of one project is used with ids of another project in the path, the query, the body and
 * worker frames. Invariant: nothing in the other project is found, revealed or changed.
 */
import t from 'tap'
import type { RowName } from '../../protocol/api.ts'
import { type Row, routeOf } from '../../protocol/contract.ts'
import { listOf } from '../scenarios/support/given.ts'
import { type Answered, encodedBody, serviceWithClient } from './support/ask.ts'
import { bad } from './support/judge.ts'
import {
  bodyFor,
  filled,
  furnish,
  idsOf,
  type Place,
  pathOf,
  placedPath,
  rows,
  slotsOf,
} from './support/rows.ts'
import { shownIn } from './support/shown.ts'

const { s, client } = await serviceWithClient(t)
t.setTimeout(120_000)
/** A text that identifies the data that must stay hidden. */
const MARK = 'Xylophone'
const [mine, theirs] = [await furnish(s, 'mine'), await furnish(s, MARK)]
const principal = await s.ok('principal.create', {
  project: mine.handle,
  name: 'all powerful',
  role_ids: ['role_owner'],
})
const key = String(
  (
    await s.ok('key.create', {
      project: mine.handle,
      name: 'stranger',
      principal_id: principal['id'],
    })
  )['key'],
)
/**
 * Values that identify the other project, its records and its worker: ids, handles and a name.
 * Records of the organization are not included, because every project can see some of them, for
 * example skills.
 */
const foreign = [...new Set(idsOf(theirs))].filter(
  (id) =>
    ![theirs.organization_key, theirs.organization_action, theirs.shared, theirs.owner].includes(
      id,
    ) && !idsOf(mine).includes(id),
)
const encoded = (slots: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(slots).map(([slot, value]) => [slot, encodeURIComponent(value)]),
  )

function ask(row: Row, path: string, body?: object): Promise<Answered> {
  const sent = encodedBody(row, body)
  return client.ask({
    ...sent,
    method: routeOf(row).method,
    path,
    headers: { authorization: `Bearer ${key}`, ...sent.headers },
  })
}
/**
 * Returns a text of the other project that the response reveals although the request does not
 * contain it. Returns undefined if the response reveals no such text.
 */
function leak({ text }: Answered, asked: string): string | undefined {
  const told = [MARK, ...foreign].find(
    (word) =>
      text.includes(word) && !asked.includes(word) && !asked.includes(encodeURIComponent(word)),
  )
  return told === undefined ? undefined : `${told} in ${text.slice(0, 300)}`
}
const statesOf = async (
  place: Place,
): Promise<Readonly<Record<string, Readonly<Record<string, unknown>>>>> => ({
  ...(await shownIn(s, place)),
  'project.list': {},
  'key.list_organization': {},
  'organization_action.list': {},
  project: await s.ok('project.get', { project: place.handle }),
  run: await s.ok('run.get', { project: place.handle, id: place.run }),
  working: await s.ok('run.get', { project: place.handle, id: place.working }),
  failed: await s.ok('run.get', { project: place.handle, id: place.failed }),
  workflow: await s.ok('workflow.get', { project: place.handle, id: place.workflow }),
})
const before = await statesOf(theirs)
/**
 * Whether a row deletes or updates a project. Requests to such a row name only the other project,
 * because the caller's own project is still needed.
 */
const ending = (name: string): boolean => name === 'project.delete' || name === 'project.update'

/**
 * Sends a request to a row. Fails the test if the response is undocumented or reveals the other
 * project.
 * @param hidden whether the status must be 403 or 404.
 */
async function tried(
  name: RowName,
  row: Row,
  path: string,
  body: object | undefined,
  hidden: boolean,
): Promise<void> {
  const answer = await ask(row, path, body)
  const what = `${name} ${path} ${JSON.stringify(body ?? '')}`
  const told = leak(answer, what)
  if (told !== undefined) t.fail(`${what} told ${told}`)
  if (row.shape.stream === 'socket')
    return void (answer.status === 426 || t.fail(`${what}: ${answer.status}`))
  const fault = bad(name, row, answer)
  if (fault !== undefined) t.fail(`${what}: ${fault}`)
  if (hidden && answer.status !== 404 && answer.status !== 403)
    t.fail(`${what} answered ${answer.status} ${answer.text.slice(0, 200)}`)
}

t.test('in the path: every kind of id in every slot of every row', async (t) => {
  for (const [name, row] of rows) {
    const slots = slotsOf(name)
    const body = bodyFor(name, mine)
    if (slots.includes('project'))
      for (const project of [theirs.handle, theirs.id])
        await tried(
          name,
          row,
          pathOf(name, encoded({ ...filled(name, theirs), project })),
          body,
          true,
        )
    if (ending(name)) continue
    for (const slot of slots) {
      // The caller chooses the keys of memory entries and the names of secrets and of repository
      // hosts, so none of them belongs to another project.
      if (/^(project|memory_key|secret_name|host_name|blueprint_key)$/.test(slot)) continue
      // Names of worker instances, which the caller also chooses, are tried anyway. In the caller's
      // project, the names of the other project refer to no worker.
      for (const id of foreign)
        await tried(
          name,
          row,
          pathOf(name, encoded({ ...filled(name, mine), [slot]: id })),
          body,
          true,
        )
    }
  }
  t.pass(`${rows.length} rows, ${foreign.length} ids`)
})

/** Returns the paths of the schema fields whose names suggest a record reference. */
function idFields(schema: unknown, at: readonly string[] = []): string[][] {
  const { properties, items, anyOf } = (schema ?? {}) as {
    properties?: Record<string, unknown>
    items?: unknown
    anyOf?: unknown[]
  }
  return [
    ...Object.entries(properties ?? {}).flatMap(([name, part]) =>
      /(^|_)ids?$|^tag$|^search$|^external_(id|ref)$|_by$|^queue$|^cursor$/.test(name)
        ? [[...at, name]]
        : idFields(part, [...at, name]),
    ),
    ...(items ? idFields(items, [...at, '0']) : []),
    ...(anyOf ?? []).flatMap((branch) => idFields(branch, at)),
  ]
}

t.test('in the query: every filter that names a record', async (t) => {
  let asked = 0
  for (const [name, row] of rows)
    for (const [field = ''] of idFields(row.shape.query)) {
      for (const id of [...foreign, MARK]) {
        await tried(
          name,
          row,
          `${placedPath(name, mine)}?${field}=${encodeURIComponent(id)}`,
          undefined,
          false,
        )
        asked++
      }
    }
  t.ok(asked > 50, `${asked} questions`)
})

t.test('in the body: every field that names a record', async (t) => {
  let asked = 0
  for (const [name, row] of rows) {
    if (ending(name) || !slotsOf(name).includes('project')) continue
    for (const [field = '', ...deeper] of idFields(row.shape.body)) {
      if (deeper.length > 0) continue
      const many =
        (row.shape.body as { properties?: Record<string, { type?: string }> } | undefined)
          ?.properties?.[field]?.type === 'array'
      for (const id of foreign) {
        const { spec: _, ...rest } = { ...bodyFor(name, mine) } as Record<string, unknown>
        await tried(
          name,
          row,
          placedPath(name, mine),
          {
            ...rest,
            ...(field !== 'definition_id' && 'spec' in (bodyFor(name, mine) ?? {}) && { spec: _ }),
            [field]: many ? [id] : id,
          },
          false,
        )
        asked++
      }
    }
  }
  t.ok(asked > 50, `${asked} requests`)
  for (const name of ['run.cancel_many', 'run.retry_many'] as const) {
    const { results } = JSON.parse(
      (
        await ask(rows.find(([other]) => other === name)?.[1] as Row, placedPath(name, mine), {
          run_ids: [theirs.run, theirs.failed, theirs.working],
        })
      ).text,
    ) as { results: { ok: boolean; error?: { code: string } }[] }
    t.strictSame(
      results.map(({ error }) => error?.code),
      ['not_found', 'not_found', 'not_found'],
      name,
    )
  }
  t.match(
    await s.call('run.start', { project: mine.handle, definition_id: theirs.workflow }, { key }),
    { status: 404 },
  )
  t.match(
    await s.call(
      'key.create',
      { project: mine.handle, name: 'for another', principal_id: theirs.principal },
      { key },
    ),
    { status: /^4/ },
  )
})

t.test('cursors and stream positions of another project give no access', async (t) => {
  for (let n = 0; n < 3; n++) await furnish(s, MARK)
  for (const [name, row] of rows) {
    const fields = Object.keys(
      (row.shape.query as { properties?: object } | undefined)?.properties ?? {},
    )
    if (!fields.includes('cursor') || !slotsOf(name).includes('project')) continue
    const page = await s.call(name, { ...filled(name, theirs), limit: 1 })
    const cursor = (page.body as { next_cursor?: string }).next_cursor
    if (cursor !== undefined)
      t.equal((await ask(row, `${placedPath(name, mine)}?cursor=${cursor}`)).status, 400, name)
  }
  const frames = await s.follow(
    'run.feed',
    { project: mine.handle, since: 0 },
    (_, all) => all.length >= 5,
    { key },
  )
  t.notMatch(JSON.stringify(frames), new RegExp([MARK, ...foreign].join('|')))
})

t.test('frames of a worker with the jobs and leases of another project', async (t) => {
  const owner = await s.worker({ action_names: [`${MARK}-act`] }, { project: theirs.handle })
  const job = await owner.job()
  const spy = await s.worker(
    { worker_instance_id: theirs.instance, queues: [], available_slots: 4 },
    { key, project: mine.handle },
  )
  spy.send({ type: 'jobs.claim', available_slots: 4 })
  const lease = { job_id: job['id'], lease_token: job['lease_token'] }
  const answer = async (frame: Record<string, unknown>, type: string) => {
    const got = spy.wait(
      (one) => one['type'] === type && one['message_id'] === frame['message_id'],
      type,
    )
    spy.send(frame)
    return got
  }
  t.match(await answer({ type: 'job.heartbeat', message_id: 'a', ...lease }, 'job.heartbeat.ack'), {
    cancel: { reason: 'lease_lost' },
  })
  t.match(
    await answer(
      { type: 'job.report', message_id: 'b', ...lease, result: { stolen: true } },
      'error',
    ),
    { error: { code: 'lease_lost' } },
  )
  t.match(
    await answer({ type: 'job.report', message_id: 'c', ...lease, status: 'failed' }, 'error'),
    { error: { code: 'lease_lost' } },
  )
  t.match(
    await answer({ type: 'job.log', message_id: 'd', ...lease, lines: [{ text: MARK }] }, 'error'),
    { error: { code: 'lease_lost' } },
  )
  spy.send({ type: 'generation.delta', ...lease, sequence: 0, delta: {} })
  t.match(await owner.report(job, { result: { mine: true } }), { duplicate: false })
  t.match(await s.ok('run.get', { project: theirs.handle, id: theirs.working }), {
    status: 'completed',
  })
  t.notMatch(JSON.stringify(spy.frames.filter(({ type }) => type === 'jobs.claimed')), MARK)
  t.strictSame(listOf(await s.ok('worker.list', { project: mine.handle })).length, 1)
  owner.close()
  spy.close()
})

t.test('the other project is unchanged', async (t) => {
  // One run is not compared, because the worker of its own project has completed it.
  const without = ({
    working: _,
    'run.list': { [theirs.working]: __, ...runs } = {},
    ...rest
  }: typeof before) => ({ ...rest, runs })
  t.strictSame(without(await statesOf(theirs)), without(before))
})
