/** One webhook: its settings, its secret, its tests and its deliveries. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton, CopyCall } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Notice, Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { ShownOnce } from '../access/keys/shown-once.tsx'
import { Warnings } from '../build/warnings.tsx'
import { Deliveries } from './deliveries.tsx'
import { webhooksText as text } from './text.ts'
import { type Webhook, WebhookForm } from './webhook-form.tsx'
import { WebhookState } from './webhooks.tsx'

type Ping = CallReply<'webhook.ping'>

const PingResult = ({ of }: { readonly of: Ping }) => (
  <div aria-live="polite">
    <Notice tone={of.success ? 'good' : 'bad'}>
      {of.success ? (
        text.pingGood(of.status_code ?? 0, of.latency_ms ?? 0)
      ) : (
        <>
          {text.pingBad}: <span class="user-text">{of.error ?? of.status_code}</span>
        </>
      )}
    </Notice>
  </div>
)

function Facts({ of }: { readonly of: Webhook }) {
  return (
    <div class="card">
      <dl class="facts body">
        <dt>{text.state}</dt>
        <dd>
          <WebhookState of={of} />
        </dd>
        <dt>{text.url}</dt>
        <dd class="mono user-text">{of.url || text.noUrl}</dd>
        <dt>{text.events}</dt>
        <dd class="mono user-text">{of.events.join(', ') || text.allEvents}</dd>
        {of.secret_ref && (
          <>
            <dt>{text.secret}</dt>
            <dd class="user-text">
              <span class="mono">{of.secret_ref}</span>
              {of.secret_version !== undefined && ` (${text.secretVersion(of.secret_version)})`}
            </dd>
          </>
        )}
        <dt>{text.id}</dt>
        <dd class="mono">
          {of.id} <CopyButton value={of.id} />
        </dd>
        <dt>{text.created}</dt>
        <dd>
          <Time at={of.created_at} />
        </dd>
        <dt>{text.changed}</dt>
        <dd>
          <Time at={of.updated_at} />
        </dd>
      </dl>
    </div>
  )
}

export default function WebhookPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id'] ?? ''
  const input = { project, webhook_id: id }
  const { state, reload } = useQuery('webhook.get', input, {
    kinds: ['webhook'],
    id,
  })
  const [ping, setPing] = useState<Ping>()
  const [asked, setAsked] = useState<'rotate' | 'remove'>()
  const [secret, setSecret] = useState<string>()
  const webhook = state.value.data
  const isEdited = currentUrl.value.query.get('edit') !== null
  const mayChange = may('project.admin')
  const list = `/p/${encodeURIComponent(project)}/webhooks`
  const test = async () => setPing(await call('webhook.ping', input))
  const edit = () => setQuery({ edit: '1' }, { push: true })
  useCommands(
    mayChange
      ? [{ id: 'webhook.edit', label: text.editTitle, icon: 'edit', keys: 'e', run: edit }]
      : [],
    [mayChange],
  )
  return (
    <Page
      title={webhook?.name ?? text.title}
      crumbs={[{ label: text.back, href: list }]}
      actions={
        <>
          <CopyCall name="webhook.get" input={input} />
          {mayChange && webhook && (
            <>
              <Menu
                label={text.actions}
                items={[
                  {
                    label: webhook.enabled ? text.disable : text.enable,
                    icon: webhook.enabled ? 'stop' : 'check',
                    onSelect: async () => {
                      await call('webhook.update', { ...input, enabled: !webhook.enabled })
                      showDone(text.saved)
                      reload()
                    },
                  },
                  { label: text.rotate, icon: 'keys', onSelect: () => setAsked('rotate') },
                  {
                    label: text.remove,
                    icon: 'trash',
                    danger: true,
                    onSelect: () => setAsked('remove'),
                  },
                ]}
              />
              <Button icon="send" disabled={webhook.url === ''} onClick={test}>
                {text.ping}
              </Button>
              <Button kind="primary" icon="edit" shortcut="e" onClick={edit}>
                {text.edit}
              </Button>
            </>
          )}
        </>
      }
    >
      {ping && <PingResult of={ping} />}
      <Show of={state.value} retry={reload}>
        {(of) => (
          <>
            <Facts of={of} />
            <Warnings {...(of.warnings && { warnings: of.warnings })} />
            <Deliveries project={project} id={id} />
            {isEdited && mayChange && (
              <WebhookForm
                project={project}
                of={of}
                onClose={(changed) => {
                  setQuery({ edit: undefined })
                  if (!changed) return
                  showDone(text.saved)
                  reload()
                }}
              />
            )}
          </>
        )}
      </Show>
      {asked === 'rotate' && (
        <Confirm
          title={text.rotateTitle}
          action={text.rotate}
          onClose={() => setAsked(undefined)}
          onConfirm={async () => {
            const { signing_secret } = await call('webhook.rotate_secret', input)
            setSecret(signing_secret)
            reload()
          }}
        >
          <p>{text.rotateHint}</p>
        </Confirm>
      )}
      {asked === 'remove' && (
        <Confirm
          title={text.removeTitle(webhook?.name ?? '')}
          action={text.remove}
          danger
          onClose={() => setAsked(undefined)}
          onConfirm={async () => {
            await call('webhook.delete', input)
            showDone(text.removed)
            go(list, { replace: true })
          }}
        >
          <p>{text.removeHint}</p>
        </Confirm>
      )}
      {secret !== undefined && (
        <ShownOnce title={text.secretCreated} value={secret} onClose={() => setSecret(undefined)} />
      )}
    </Page>
  )
}
