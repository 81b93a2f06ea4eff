/**
 * The deliveries of a webhook with their attempts. The URL contains the id of the opened delivery.
 */
import { type CallReply, call } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { SelectField } from '../../design/field.tsx'
import { Listed } from '../../design/listed.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog } from '../../design/overlay.tsx'
import { Badge, Empty, type Tone } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { formatDuration, formatNumber } from '../../text/format.ts'
import { webhooksText as text } from './text.ts'

type Delivery = CallReply<'webhook.deliveries'>['items'][number]
type Attempt = NonNullable<Delivery['attempt_log']>[number]

const tones: Readonly<Record<Delivery['status'], Tone>> = {
  pending: 'warn',
  processing: 'info',
  delivered: 'good',
  failed: 'bad',
}
const statuses = ['pending', 'processing', 'delivered', 'failed'] as const

const attemptColumns: readonly Column<Attempt>[] = [
  { name: text.attempt, number: true, cell: ({ attempt }) => attempt },
  {
    name: text.outcome,
    cell: ({ delivered, response_code }) => (
      <Badge tone={delivered ? 'good' : 'bad'}>
        {delivered ? text.delivered : text.failed} {response_code}
      </Badge>
    ),
  },
  { name: text.time, cell: ({ ended_at }) => <Time at={ended_at} /> },
  {
    name: text.duration,
    number: true,
    cell: ({ latency_ms }) => (latency_ms === undefined ? '–' : formatDuration(latency_ms)),
  },
  {
    name: text.answer,
    cell: ({ error, answer }) => (
      <>
        {error !== undefined && <div class="user-text">{error}</div>}
        {answer !== undefined && answer !== '' && <pre class="small user-text">{answer}</pre>}
      </>
    ),
  },
]

function Opened({
  project,
  of,
  onClose,
}: {
  readonly project: string
  readonly of: Delivery
  readonly onClose: () => void
}) {
  const { id, webhook_id, event_type, status, run_id, attempt_log = [], resend_of } = of
  const input = { project, webhook_id, delivery_id: id }
  const isEnded = status === 'delivered' || status === 'failed'
  return (
    <Dialog title={`${text.delivery} · ${event_type}`} wide onClose={onClose}>
      <dl class="facts">
        <dt>{text.id}</dt>
        <dd class="mono">{id}</dd>
        <dt>{text.status}</dt>
        <dd>
          <Badge tone={tones[status]}>{status}</Badge>
        </dd>
        {run_id && (
          <>
            <dt>{text.run}</dt>
            <dd>
              <a class="mono" href={`/p/${encodeURIComponent(project)}/runs/${run_id}`}>
                {run_id}
              </a>
            </dd>
          </>
        )}
        {resend_of && (
          <>
            <dt>{text.resentOf}</dt>
            <dd class="mono">{resend_of}</dd>
          </>
        )}
        {of.next_attempt_at && (
          <>
            <dt>{text.next}</dt>
            <dd>
              <Time at={of.next_attempt_at} relative />
            </dd>
          </>
        )}
        {of.last_error && (
          <>
            <dt>{text.error}</dt>
            <dd class="user-text">{of.last_error}</dd>
          </>
        )}
      </dl>
      {attempt_log.length === 0 ? (
        <p class="soft">{text.noAttempts}</p>
      ) : (
        <DataTable
          label={text.attempts}
          columns={attemptColumns}
          items={attempt_log}
          keyOf={({ attempt, ended_at }) => `${attempt} ${ended_at}`}
        />
      )}
      <div class="actions">
        {may('project.admin') && <CopyCall name="webhook.resend" input={input} />}
        {may('project.admin') && (
          <Button
            kind="primary"
            icon="send"
            disabled={!isEnded}
            onClick={async () => {
              const again = await call('webhook.resend', input)
              showDone(text.resent)
              setQuery({ delivery: again.id })
            }}
          >
            {text.resend}
          </Button>
        )}
      </div>
    </Dialog>
  )
}

/** Lists the deliveries, with a filter by status. */
export function Deliveries({ project, id }: { readonly project: string; readonly id: string }) {
  const list = useList(
    'webhook.deliveries',
    { project, webhook_id: id, limit: 100, include: ['attempt_log', 'resend_of'] },
    { kinds: ['delivery'] },
  )
  const { query } = currentUrl.value
  const status = query.get('status') ?? ''
  const openId = query.get('delivery')
  const columns: readonly Column<Delivery>[] = [
    {
      name: text.event,
      cell: (one) => (
        <>
          <button
            type="button"
            class="link mono"
            onClick={() => setQuery({ delivery: one.id }, { push: true })}
          >
            {one.event_type}
          </button>
          <div class="small soft mono user-text">{one.id}</div>
        </>
      ),
    },
    {
      name: text.status,
      cell: (one) => (
        <>
          <Badge tone={tones[one.status]}>{one.status}</Badge>
          {one.last_error && <div class="small soft user-text">{one.last_error}</div>}
        </>
      ),
    },
    { name: text.attempts, number: true, cell: ({ attempts }) => formatNumber(attempts) },
    { name: text.answer, number: true, cell: ({ response_code }) => response_code ?? '–' },
    { name: text.time, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: text.next,
      cell: ({ next_attempt_at: at }) => (at ? <Time at={at} relative /> : '–'),
    },
  ]
  return (
    <section class="stack">
      <div class="row apart">
        <h2>{text.deliveries}</h2>
        <SelectField
          label={text.filter}
          unlabelled
          choices={[
            { value: '', label: text.all },
            ...statuses.map((one) => ({ value: one, label: one })),
          ]}
          value={status}
          onValue={(next) => setQuery({ status: next })}
        />
      </div>
      <Listed
        of={list}
        empty={
          <Empty icon="send" title={text.noDeliveries}>
            <p>{text.noDeliveriesHint}</p>
          </Empty>
        }
      >
        {(items) => {
          const opened = items.find((one) => one.id === openId)
          return (
            <>
              <DataTable
                label={text.deliveries}
                columns={columns}
                items={items.filter((one) => status === '' || one.status === status)}
                keyOf={(one) => one.id}
              />
              {opened && (
                <Opened
                  project={project}
                  of={opened}
                  onClose={() => setQuery({ delivery: undefined })}
                />
              )}
            </>
          )
        }}
      </Listed>
    </section>
  )
}
