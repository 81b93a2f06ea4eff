/** Records one request and its response for every operation, from a real service. */
import { DEVICE_GRANT, unauthenticated } from '../../protocol/access/unauthenticated-rows.ts'
import { routeOf } from '../../protocol/contract.ts'
import { integrationSecret } from '../../protocol/events/integrations.ts'
import type { Example, Examples } from '../../protocol/openapi/examples.ts'
import { accepted, deviceForm, waitingDevice } from '../hostile/support/people.ts'
import { bodyFor, filled, furnish, type Place, queryFor, rows } from '../hostile/support/rows.ts'
import { instant } from '../scenarios/support/given.ts'
import type { Service } from '../support/service.ts'
import { normalizer } from './normal.ts'
import { unrecorded } from './unrecorded.ts'

/** Milliseconds after which a stream is cut off if no frame with data has arrived. */
const STREAM_MS = 1500
const rank = (name: string): number =>
  name === 'project.delete' ? 2 : /delete|revoke/.test(name) ? 1 : 0

interface Request {
  readonly route: string
  readonly slots: Readonly<Record<string, string>>
  readonly query: string
  readonly body: object | undefined
  readonly key: string | undefined
  /** The fields of a form, which is sent as the body. */
  readonly form?: Readonly<Record<string, string>>
  /** Whether the body is sent as a form with the bytes of `file`. */
  readonly streamed?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Sends a request and records it with its response.
 * @throws {Error} when the request is refused, unless the worker socket refuses it with 426.
 */
async function exampleOf(s: Service, request: Request): Promise<Example> {
  const { method, path } = routeOf(request)
  const filledPath = path.replaceAll(/:(\w+)/g, (_, slot: string) =>
    encodeURIComponent(request.slots[slot] ?? ''),
  )
  const abort = new AbortController()
  const answer = await fetch(`${s.url}/v1${filledPath}${request.query}`, {
    method,
    signal: abort.signal,
    headers: {
      ...(request.key !== undefined && { authorization: `Bearer ${request.key}` }),
      ...(request.body && !request.streamed && { 'content-type': 'application/json' }),
      ...(request.form && deviceForm(request.form).headers),
      ...request.headers,
    },
    ...(request.body && {
      body: request.streamed ? multipart(request.body) : JSON.stringify(request.body),
    }),
    ...(request.form && { body: deviceForm(request.form).body }),
  })
  const stream = /event-stream/.test(answer.headers.get('content-type') ?? '')
  const text = stream ? await firstFrames(answer, abort) : await answer.text()
  if (!answer.ok && answer.status !== 426)
    throw new Error(`${request.route} answered ${answer.status} ${text}`)
  const json = /json/.test(answer.headers.get('content-type') ?? '')
  const query = Object.fromEntries(new URLSearchParams(request.query))
  const normal = normalizer()
  return {
    ...(Object.keys(request.slots).length > 0 && { path: normal(request.slots) }),
    ...(request.query && { query }),
    ...(request.body && { body: normal(request.body) }),
    ...(request.form && { body: normal(request.form) }),
    status: answer.status === 426 ? 101 : answer.status,
    ...(text !== '' &&
      answer.ok && { answer: json ? normal(JSON.parse(text) as unknown) : normal(text) }),
  }
}

async function firstFrames(answer: Response, abort: AbortController): Promise<string> {
  const timer = setTimeout(() => abort.abort(), STREAM_MS)
  let text = ''
  try {
    for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      if (/^data: .*\n\n/m.test(text)) break
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
    abort.abort()
  }
  return `${text.split('\n\n').slice(0, 2).join('\n\n').trimEnd()}\n\n`
}

/**
 * Records one example of every operation. Returns the examples in the order of the table.
 * Operations without authentication come last. Each row that deletes or revokes a record, and each
 * row that requires only authentication, uses a separate project, because other rows need the
 * records.
 */
export async function recordExamples(s: Service): Promise<Examples> {
  const places: Place[] = []
  const seen = new Map<string, number>()
  const examples: Record<string, Example> = {}
  for (const [name, row] of [...rows].sort(([a], [b]) => rank(a) - rank(b))) {
    const nth = seen.get(row.shape.tag) ?? 0
    seen.set(row.shape.tag, nth + 1)
    const own = rank(name) > 0 || row.shape.permission === 'authenticated'
    const place = own ? await furnish(s, 'orders') : (places[nth] ??= await furnish(s, 'orders'))
    const worker =
      name === 'worker.drain' || name === 'worker.list'
        ? await s.worker(
            { worker_instance_id: place.instance, action_names: ['orders.ship'] },
            { project: place.handle },
          )
        : undefined
    const written = unrecorded[name]?.(place)
    if (written) {
      const normal = normalizer()
      const body = bodyFor(name, place)
      examples[name] = {
        path: normal(filled(name, place)),
        ...(body && { body: normal(body) }),
        status: written.status,
        answer: normal(written.answer),
      }
      continue
    }
    examples[name] = await exampleOf(s, {
      route: row.route,
      slots: filled(name, place),
      query: queryFor(name),
      streamed: row.shape.upload === 'streamed',
      ...(await accepted(s, name, place)),
    })
    worker?.close()
  }
  Object.assign(examples, await signedIn(s))
  Object.assign(examples, await signedInToConsole(s))
  examples['artifact.download'] = await downloaded(s)
  examples['trigger.http'] = await triggered(s)
  examples['integration.receive'] = await received(s)
  return Object.fromEntries(
    [...rows.map(([name]) => name), ...Object.keys(unauthenticated)].flatMap((name) => {
      const example = examples[name]
      return example ? [[name, example]] : []
    }),
  )
}

/**
 * Signs in a device: the device requests a code, a person approves it, and the device fetches its
 * token.
 */
async function signedIn(s: Service): Promise<Record<string, Example>> {
  const { handle: project, user } = await furnish(s, 'orders')
  const { key } = await s.ok('token.create', { project, id: user, name: 'first' })
  const request = { slots: {}, query: '', body: undefined, key: undefined }
  const code = await exampleOf(s, {
    ...request,
    route: unauthenticated['device.code'].route,
    form: { service_label: 'laptop', service_client: 'baton', service_client_version: '0.1.0' },
  })
  const { device_code, user_code } = await waitingDevice(s)
  await s.ok('device.answer', { user_code, decision: 'allow' }, { key: String(key) })
  const token = await exampleOf(s, {
    ...request,
    route: unauthenticated['device.token'].route,
    form: { grant_type: DEVICE_GRANT, device_code },
  })
  return { 'device.code': code, 'device.token': token }
}

/** Signs in to the console, reads the console session, and signs out. */
async function signedInToConsole(s: Service): Promise<Record<string, Example>> {
  const { handle: project, user } = await furnish(s, 'orders')
  const { key } = await s.ok('token.create', { project, id: user, name: 'console' })
  const of = (name: 'console.sign_in' | 'console.session' | 'console.sign_out', more: object) =>
    exampleOf(s, {
      route: unauthenticated[name].route,
      slots: {},
      query: '',
      body: undefined,
      key: undefined,
      ...more,
    })
  return {
    'console.session': await of('console.session', {}),
    'console.sign_in': await of('console.sign_in', { body: { credential: key } }),
    'console.sign_out': await of('console.sign_out', {}),
  }
}

/** Records a GitLab webhook that reports an opened merge request. */
async function received(s: Service): Promise<Example> {
  const { handle: project } = await furnish(s, 'orders')
  const webhook_secret = 'example-secret-token'
  await s.ok('secret.put', {
    project,
    secret_name: integrationSecret('gitlab'),
    entries: { webhook_secret },
  })
  return exampleOf(s, {
    route: unauthenticated['integration.receive'].route,
    slots: { project: String(project), provider: 'gitlab' },
    query: '',
    body: {
      object_kind: 'merge_request',
      project: { path_with_namespace: 'shop/orders' },
      user: { username: 'ada' },
      object_attributes: { iid: 7, title: 'Count orders', action: 'open' },
    },
    headers: { 'X-Gitlab-Token': webhook_secret, 'Idempotency-Key': 'delivery-1' },
    key: undefined,
  })
}

function multipart(body: object): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(body))
    form.append(name, name === 'file' ? new Blob([String(value)]) : String(value))
  return form
}

async function downloaded(s: Service): Promise<Example> {
  const { handle: project, upload: artifact_id } = await furnish(s, 'orders')
  const { url } = await s.ok('artifact.signed_url', { project, artifact_id })
  return exampleOf(s, {
    route: unauthenticated['artifact.download'].route,
    slots: { token: String(url).split('/').at(-1) ?? '' },
    query: '',
    body: undefined,
    key: undefined,
  })
}

async function triggered(s: Service): Promise<Example> {
  const { handle: project } = await furnish(s, 'orders')
  const http_handle = 'orders-paid'
  const loop = await s.ok('loop.create', {
    project,
    name: 'orders',
    triggers: [{ kind: 'http', config: { http_handle } }],
    ...instant(),
  })
  await s.ok('loop.update', { project, id: loop['id'], status: 'active' })
  return exampleOf(s, {
    route: unauthenticated['trigger.http'].route,
    slots: { http_handle },
    query: '',
    body: { order: 'o-17', total: 42 },
    key: undefined,
  })
}
