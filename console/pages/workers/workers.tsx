/**
 * Workers and queues: waiting jobs, the workers that can claim them, and the jobs of each worker.
 */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Code, CopyCall } from '../../design/copy.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { Badge, Empty, Show, type Tone } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { Duration, Time } from '../../design/time.tsx'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { formatNumber } from '../../text/format.ts'
import { workersText as text } from './text.ts'

type Queue = CallReply<'queue.list'>['items'][number]
type Worker = CallReply<'worker.list'>['items'][number]

/** Maximum number of jobs that are listed for a worker. */
const MAX_SHOWN_JOBS = 5
const tones: Readonly<Record<Worker['state'], Tone>> = {
  online: 'good',
  draining: 'info',
  stale: 'warn',
  ended: 'neutral',
}

/** Returns the label of an entry of `lines`: its action, model, or the id of its environment. */
const lineName = ({ action_name, provider, model, environment_id }: Queue['lines'][number]) =>
  action_name ?? (model === undefined ? (environment_id ?? '–') : `${provider ?? ''} ${model}`)

const queueColumns: readonly Column<Queue>[] = [
  { name: text.queue, cell: ({ name }) => <strong class="user-text">{name}</strong> },
  { name: text.waiting, number: true, cell: ({ waiting }) => formatNumber(waiting) },
  { name: text.inWork, number: true, cell: ({ in_work }) => formatNumber(in_work) },
  {
    name: text.oldest,
    cell: ({ oldest_waiting_since: since }) => (since ? <Duration from={since} /> : '–'),
  },
  {
    name: text.takers,
    cell: ({ worker_count, slots_used, slots_free, waiting }) =>
      worker_count === 0 && waiting > 0 ? (
        <Badge tone="warn">{text.noTaker}</Badge>
      ) : (
        `${text.workerCount(worker_count)}, ${text.slots(slots_used, slots_free)}`
      ),
  },
  {
    name: text.what,
    cell: ({ lines }) => (
      <ul>
        {lines.map((line) => (
          <li key={lineName(line)} class="user-text">
            {lineName(line)} <span class="soft">{formatNumber(line.waiting + line.in_work)}</span>
          </li>
        ))}
      </ul>
    ),
  },
]

function Queues({ project }: { readonly project: string }) {
  const { state, reload } = useQuery('queue.list', { project }, { kinds: ['run', 'worker'] })
  return (
    <Show of={state.value} retry={reload}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty icon="workers" title={text.noQueues} />
        ) : (
          <DataTable
            label={text.queues}
            columns={queueColumns}
            items={items}
            keyOf={({ name }) => name}
          />
        )
      }
    </Show>
  )
}

const Jobs = ({ of: { jobs = [] }, base }: { readonly of: Worker; readonly base: string }) => (
  <ul>
    {jobs.slice(0, MAX_SHOWN_JOBS).map(({ job_id, run_id, session_id, action_name, kind }) => (
      <li key={job_id}>
        <a
          class="user-text"
          href={run_id ? `${base}/runs/${run_id}` : `${base}/sessions/${session_id ?? ''}`}
        >
          {action_name ?? kind}
        </a>
      </li>
    ))}
    {jobs.length > MAX_SHOWN_JOBS && (
      <li class="soft">{text.moreJobs(jobs.length - MAX_SHOWN_JOBS)}</li>
    )}
  </ul>
)

function Workers({ project }: { readonly project: string }) {
  const { state, reload } = useQuery('worker.list', { project }, { kinds: ['run', 'worker'] })
  const [draining, setDraining] = useState<Worker>()
  const base = `/p/${encodeURIComponent(project)}`
  const nameOf = ({ name, worker_instance_id }: Worker) => name ?? worker_instance_id
  const columns: readonly Column<Worker>[] = [
    {
      name: text.name,
      cell: (worker) => (
        <>
          <strong class="user-text">{nameOf(worker)}</strong>
          <div class="small soft mono user-text">{worker.worker_instance_id}</div>
        </>
      ),
    },
    { name: text.state, cell: (one) => <Badge tone={tones[one.state]}>{one.state}</Badge> },
    {
      name: text.takes,
      cell: ({ queues, action_names, models }) => (
        <>
          <div class="user-text">{queues.join(', ') || text.allQueues}</div>
          <div class="small soft user-text">
            {[...action_names, ...models.map(({ model }) => model)].join(', ') || text.allActions}
          </div>
        </>
      ),
    },
    {
      name: text.inWork,
      number: true,
      cell: ({ leased, concurrency_limit }) =>
        `${formatNumber(leased)} / ${formatNumber(concurrency_limit)}`,
    },
    { name: text.jobs, cell: (one) => <Jobs of={one} base={base} /> },
    { name: text.connected, cell: ({ connected_at }) => <Time at={connected_at} relative /> },
    { name: text.seen, cell: ({ last_seen_at }) => <Time at={last_seen_at} relative /> },
    { name: text.version, cell: ({ version }) => <span class="user-text">{version ?? '–'}</span> },
    {
      name: text.drain,
      cell: (one) =>
        one.state === 'online' && may('project.edit') ? (
          <Button onClick={() => setDraining(one)}>{text.drain}</Button>
        ) : null,
    },
  ]
  return (
    <Show of={state.value} retry={reload}>
      {({ items }) => (
        <>
          {items.length === 0 ? (
            <Empty icon="workers" title={text.noWorkers}>
              <p>{text.noWorkersHint}</p>
              <Code>{`${text.command} ${project}`}</Code>
            </Empty>
          ) : (
            <DataTable
              label={text.workers}
              columns={columns}
              items={items}
              keyOf={({ worker_instance_id }) => worker_instance_id}
            />
          )}
          {draining && (
            <Confirm
              title={text.drainTitle(nameOf(draining))}
              action={text.drain}
              onClose={() => setDraining(undefined)}
              onConfirm={async () => {
                const { worker_instance_id } = draining
                await call('worker.drain', { project, worker_instance_id })
                showDone(text.drained)
                reload()
              }}
            >
              <p>{text.drainHint}</p>
            </Confirm>
          )}
        </>
      )}
    </Show>
  )
}

export default function WorkersPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  return (
    <Page title={text.title} actions={<CopyCall name="worker.list" input={{ project }} />}>
      <Tabs
        label={text.title}
        tabs={[
          { id: 'queues', label: text.queues, content: () => <Queues project={project} /> },
          { id: 'workers', label: text.workers, content: () => <Workers project={project} /> },
        ]}
      />
    </Page>
  )
}
