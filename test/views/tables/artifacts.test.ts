/** The list of artifacts: its content, its visibility, and the index that its queries use. */
import Database from 'better-sqlite3'
import t from 'tap'
import type { ArtifactReservation, CompleteUpload } from '../../../protocol/artifacts/commands.ts'
import { migrate } from '../../../views/files/migrate.ts'
import { newestListing } from '../../../views/newest.ts'
import { planPage } from '../../../views/page.ts'
import { Store, type Value } from '../../../views/store.ts'
import { readEntry } from '../../../views/tables/access/audited.ts'
import {
  applyArtifact,
  artifactConditions,
  artifactIds,
  artifactList,
} from '../../../views/tables/artifacts/artifacts.ts'
import { bytes, DOCX, fresh, lease, owner, upload } from '../../actors/artifacts/story.ts'
import { START } from '../../support/given.ts'

const ada = { id: 'ada', admin: false }
const bob = { id: 'bob', admin: false }
const attachment = (session_id: string) => ({
  ...upload,
  attachment: { session_id, until: START + 600_000 },
})
const worker = { ...upload, owner: 'svc_1', lease }

function world() {
  const db = new Database(':memory:')
  migrate(db)
  const store = new Store(db)
  const project = store.numberOf('prj_1')
  let cursor = 0
  const apply = (id: string, scene: ReturnType<typeof fresh>, from = 0) => {
    const entry = {
      project: 'prj_1',
      kind: 'artifact' as const,
      id,
      command: { id: 'c', name: 'n' },
      origin: { at: scene.at, principal: { type: 'user' as const, id: 'user_1' } },
      events: scene.history.slice(from),
      prev: 0,
    }
    applyArtifact(store, { cursor: (cursor += 1000), entry })
    return entry
  }
  return {
    db,
    store,
    project,
    apply,
    /** Performs an upload that completes `seconds` after the start. */
    put: (
      id: string,
      seconds: number,
      input: ArtifactReservation,
      more: Partial<CompleteUpload> = {},
    ) => {
      const self = { project: 'prj_1', kind: 'artifact', id } as const
      const stored = {
        ...bytes,
        ...more,
        ...(input.lease && { lease: input.lease }),
        ...(input.attachment && { attachment: {} }),
      }
      const done = fresh()
        .when('artifact.reserve', input, { self })
        .when('artifact.complete', stored, { self, at: START + seconds * 1000 })
      apply(id, done)
      return done
    },
    list: (input: Partial<Parameters<typeof artifactList>[2]> = {}) => {
      const { items, position } = artifactList(store, project, { viewer: ada, ...input })
      return { ids: items.map(({ id }) => id), position }
    },
    session: (id: string, closed: 0 | 1, person: string) => {
      store.run(
        `INSERT INTO sessions (id, project, agent, session_key, scope, status, private, active_at,
           revision, gone, record, compaction)
         VALUES (?, ?, 'agt_1', 'k', 'agent', 'active', ?, 0, 0, 0, '{}', '{}')`,
        id,
        project,
        closed,
      )
      store.run(
        'INSERT INTO session_people (session, person) SELECT n, ? FROM sessions WHERE id = ?',
        person,
        id,
      )
    },
  }
}

t.test('only complete uploads are listed, newest first', async (t) => {
  const w = world()
  w.put('art_1', 1, worker)
  w.put('art_2', 3, worker)
  w.put('art_3', 2, worker)
  const self = { project: 'prj_1', kind: 'artifact', id: 'art_4' } as const
  const pending = fresh().when('artifact.reserve', worker, { self })
  w.apply('art_4', pending)
  t.same(w.list().ids, ['art_2', 'art_3', 'art_1'])
  w.apply('art_4', pending.when('artifact.abandon'))
  t.same(w.list().ids, ['art_2', 'art_3', 'art_1'])
})
t.test('a deleted artifact leaves the list, a converted one shows the outcome', async (t) => {
  const w = world()
  const office = w.put('art_1', 1, upload, { mime_type: DOCX, convert: true })
  const self = { project: 'prj_1', kind: 'artifact', id: 'art_1' } as const
  const job_id = office.state?.state === 'ready' ? office.state.convert_job : undefined
  const result = { state: 'ready' }
  const settled = { job_id, outcome: 'completed', attempt: 1, result }
  const done = office.when('job.settled', settled, { self })
  w.apply('art_1', done, office.history.length)
  const viewer = owner
  t.match(artifactList(w.store, w.project, { viewer }).items, [{ conversion: { state: 'ready' } }])
  const gone = done.when('artifact.delete', { viewer }, { self })
  w.apply('art_1', gone, done.history.length)
  t.same(w.list({ viewer }).ids, [])
})
t.test('private artifacts are listed for their owner only', async (t) => {
  const w = world()
  w.put('art_1', 1, { ...upload, owner: 'ada' })
  w.put('art_2', 2, worker)
  t.same(w.list().ids, ['art_2', 'art_1'])
  t.same(w.list({ viewer: bob }).ids, ['art_2'])
  t.same(w.list({ viewer: { id: 'root', admin: true } }).ids, ['art_2'])
})
t.test('artifacts of a private session are listed for its readers', async (t) => {
  const w = world()
  w.session('ses_1', 1, 'ada')
  w.session('ses_2', 0, 'ada')
  w.put('art_1', 1, { ...worker, lease: { ...lease, session_id: 'ses_1' } })
  w.put('art_2', 2, { ...worker, lease: { ...lease, session_id: 'ses_2' } })
  w.put('art_3', 3, { ...worker, lease: { ...lease, session_id: 'ses_3' } })
  t.same(w.list().ids, ['art_2', 'art_1'])
  t.same(w.list({ viewer: bob }).ids, ['art_2'])
  t.same(w.list({ viewer: { id: 'svc_1', admin: false } }).ids, ['art_3', 'art_2', 'art_1'])
})
t.test('run, step and the beginning of the type filter', async (t) => {
  const w = world()
  w.put('art_1', 1, worker, { mime_type: 'image/PNG' })
  w.put(
    'art_2',
    2,
    { ...worker, lease: { ...lease, step_id: 'run_1:test' } },
    { mime_type: 'imagery/x' },
  )
  w.put('art_3', 3, { ...worker, lease: { ...lease, run_id: 'run_2', step_id: 'run_2:build' } })
  t.same(w.list({ run_id: 'run_1' }).ids, ['art_2', 'art_1'])
  t.same(w.list({ run_id: 'run_1', step_id: 'run_1:test' }).ids, ['art_2'])
  t.same(w.list({ mime: 'image/' }).ids, ['art_1'])
  t.same(w.list({ mime: 'Image/' }).ids, ['art_1'])
  t.same(w.list({ mime: 'mage' }).ids, [])
  t.same(w.list({ mime: '%' }).ids, [])
})
t.test('pages neither repeat nor skip artifacts of one time', async (t) => {
  const w = world()
  for (const id of ['art_1', 'art_2', 'art_3', 'art_4', 'art_5']) w.put(id, 1, worker)
  const seen: string[] = []
  for (let after: readonly Value[] | undefined = []; after; ) {
    const { ids, position } = w.list({ limit: 2, ...(after.length > 0 && { after }) })
    seen.push(...ids)
    after = position
  }
  t.same(seen, ['art_5', 'art_4', 'art_3', 'art_2', 'art_1'])
})
t.test('the ids of all artifacts are read in order, whoever may read them', async (t) => {
  const w = world()
  w.put('art_3', 1, upload)
  w.put('art_1', 2, worker)
  w.put('art_2', 3, { ...upload, owner: 'ada' })
  const ids = (after: string) => artifactIds(w.store, w.project, { after, limit: 2 }).items
  t.same(ids(''), ['art_1', 'art_2'])
  t.same(ids('art_2'), ['art_3'])
  t.same(ids('art_3'), [])
})
t.test('every list is read along one index, in order', async (t) => {
  const { db } = world()
  for (const run_id of [undefined, 'run_1'])
    for (const after of [undefined, [1, 'art_1']]) {
      const input = {
        viewer: ada,
        ...(run_id !== undefined && { run_id }),
        ...(after && { after }),
      }
      const { sql, values } = planPage(
        newestListing('artifacts', 1, artifactConditions(input)),
        input,
      )
      const plan = db
        .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...values)
        .map(({ detail }) => detail)
      t.match(plan[0], run_id ? /USING INDEX artifacts_run/ : /USING INDEX artifacts_new/)
      t.notMatch(plan.join(), /TEMP B-TREE|SCAN/)
    }
})
t.test('uploads and deletions are audited', async (t) => {
  const w = world()
  const done = w.put('art_1', 1, upload)
  const self = { project: 'prj_1', kind: 'artifact', id: 'art_1' } as const
  const gone = done.when('artifact.delete', { viewer: owner }, { self })
  const told = readEntry(w.apply('art_1', gone))
  t.match(told, [
    { action: 'create', resource_type: 'artifact', resource_id: 'art_1', name: bytes.name },
    { action: 'delete', resource_type: 'artifact', resource_id: 'art_1', name: bytes.name },
  ])
  t.equal(told.length, 2)
})
t.test('the name of an artifact of a session is not in the audit log', async (t) => {
  const w = world()
  const done = w.put('art_1', 1, { ...worker, lease: { ...lease, session_id: 'ses_1' } })
  const self = { project: 'prj_1', kind: 'artifact', id: 'art_1' } as const
  const gone = done.when('artifact.delete', { viewer: { id: 'x', admin: true } }, { self })
  const told = readEntry(w.apply('art_1', gone))
  t.same(
    told.map(({ action, name }) => [action, name]),
    [
      ['create', undefined],
      ['delete', undefined],
    ],
  )
})
t.test(
  'attachments are listed for the readers of their session, and for their owner',
  async (t) => {
    const w = world()
    w.session('ses_1', 1, 'ada')
    w.session('ses_2', 0, 'ada')
    w.put('art_1', 1, attachment('ses_1'))
    w.put('art_2', 2, attachment('ses_2'))
    t.same(w.list().ids, ['art_2', 'art_1'])
    t.same(w.list({ viewer: bob }).ids, ['art_2'])
    t.same(w.list({ viewer: owner }).ids, ['art_2', 'art_1'])
  },
)
