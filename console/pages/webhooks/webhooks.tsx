/** The webhooks of a project. */
import { useState } from 'preact/hooks'
import { useList } from '../../api/query.ts'
import { CopyCall } from '../../design/copy.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { Listed } from '../../design/listed.tsx'
import { Badge, Empty } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { ShownOnce } from '../access/keys/shown-once.tsx'
import { webhooksText as text } from './text.ts'
import { type Webhook, WebhookForm } from './webhook-form.tsx'

/** Shows whether a webhook is enabled and has a URL. */
export const WebhookState = ({ of: { enabled, url } }: { readonly of: Webhook }) =>
  enabled ? (
    url === '' ? (
      <Badge tone="warn">{text.noUrl}</Badge>
    ) : (
      <Badge tone="good">{text.enabled}</Badge>
    )
  ) : (
    <Badge>{text.disabled}</Badge>
  )

export default function WebhooksPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const list = useList('webhook.list', { project, limit: 100 }, { kinds: ['webhook'] })
  const [created, setCreated] = useState<Webhook>()
  const base = `/p/${encodeURIComponent(project)}/webhooks`
  const isNew = currentUrl.value.query.get('new') !== null
  const mayCreate = may('project.admin')
  const openNew = () => setQuery({ new: '1' }, { push: true })
  const create = mayCreate && <PageAction label={text.new} keys="n" onRun={openNew} />
  const columns: readonly Column<Webhook>[] = [
    {
      name: text.name,
      cell: ({ id, name, url }) => (
        <>
          <a class="user-text" href={`${base}/${id}`}>
            <strong>{name}</strong>
          </a>
          <div class="small soft mono user-text">{url}</div>
        </>
      ),
    },
    { name: text.state, cell: (webhook) => <WebhookState of={webhook} /> },
    {
      name: text.events,
      cell: ({ events }) =>
        events.length === 0 ? (
          <span class="soft">{text.allEvents}</span>
        ) : (
          <span class="mono user-text">{events.join(', ')}</span>
        ),
    },
    { name: text.changed, cell: ({ updated_at }) => <Time at={updated_at} relative /> },
  ]
  return (
    <Page
      title={text.title}
      actions={
        <>
          <CopyCall name="webhook.list" input={{ project }} />
          {create}
        </>
      }
    >
      <Listed
        of={list}
        empty={
          <Empty icon="webhooks" title={text.none}>
            <p>{text.noneHint}</p>
          </Empty>
        }
      >
        {(items) => (
          <DataTable label={text.title} columns={columns} items={items} keyOf={({ id }) => id} />
        )}
      </Listed>
      {isNew && mayCreate && (
        <WebhookForm
          project={project}
          onClose={(webhook) => {
            setQuery({ new: undefined })
            setCreated(webhook)
          }}
        />
      )}
      {created?.signing_secret !== undefined && (
        <ShownOnce
          title={text.secretCreated}
          value={created.signing_secret}
          onClose={() => {
            setCreated(undefined)
            go(`${base}/${created.id}`)
          }}
        />
      )}
    </Page>
  )
}
