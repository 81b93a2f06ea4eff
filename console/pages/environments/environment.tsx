/** The page of one environment: its details, its files, a terminal in it, and its logs. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Failure, Notice, Skeleton } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { currentUrl } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { FilesPart } from './files/files.tsx'
import { ReleaseDialog, TakeDialog } from './lease.tsx'
import { LogsPart } from './logs.tsx'
import { EditDialog, Overview } from './overview.tsx'
import { stateTones } from './state.ts'
import { TerminalPart } from './terminal/terminal.tsx'
import { environmentsText as text } from './text.ts'

type Open = 'destroy' | 'take' | 'release' | 'edit'

export default function EnvironmentPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id'] ?? ''
  const base = `/p/${encodeURIComponent(project)}`
  const input = { project, environment_id: id }
  const { state, reload } = useQuery('environment.get', input, {
    kinds: ['environment', 'worker'],
    id,
  })
  const [open, setOpen] = useState<Open>()
  const close = (): void => {
    setOpen(undefined)
    reload()
  }
  const { data: environment, error } = state.value
  const crumbs = [{ label: text.title, href: `${base}/environments` }]
  if (!environment)
    return (
      <Page title={id} crumbs={crumbs}>
        {error ? <Failure error={error} retry={reload} /> : <Skeleton lines={8} />}
      </Page>
    )
  const { name, status, worker_state, provider } = environment
  const gone = status === 'destroyed' || status === 'destroying'
  const allowed = may('project.edit') && !gone
  const connected = worker_state === 'connected'
  const start = async (): Promise<void> => {
    const { started } = await call('environment.start_worker', input)
    showDone(started ? text.started : text.reused)
    reload()
  }
  const destroy = async (): Promise<void> => {
    await call('environment.delete', input)
    showDone(text.destroyed)
  }
  const onTerminal = currentUrl.value.query.get('tab') === 'terminal'
  return (
    <Page
      title={name}
      heading={
        <span class="row">
          {name}
          <Badge tone={stateTones[status] ?? 'neutral'}>{status}</Badge>
        </span>
      }
      crumbs={crumbs}
      actions={
        <>
          <CopyCall name="environment.get" input={input} />
          {allowed && (
            <Menu
              label={text.actions}
              items={[
                { label: text.edit, icon: 'edit', onSelect: () => setOpen('edit') },
                environment.lease
                  ? { label: text.release, icon: 'close', onSelect: () => setOpen('release') }
                  : { label: text.take, icon: 'pin', onSelect: () => setOpen('take') },
                {
                  label: text.destroy,
                  icon: 'trash',
                  danger: true,
                  onSelect: () => setOpen('destroy'),
                },
              ]}
            />
          )}
          {allowed && !connected && provider !== 'worker' && (
            <Button kind="primary" icon="start" onClick={start}>
              {text.start}
            </Button>
          )}
        </>
      }
    >
      {error && <Failure error={error} retry={reload} />}
      {environment.error && (
        <Notice tone={status === 'failed' ? 'bad' : 'warn'}>
          <span class="user-text">{environment.error}</span>
        </Notice>
      )}
      {gone ? (
        <>
          <Notice>{text.ended}</Notice>
          <Overview of={environment} base={base} project={project} />
        </>
      ) : (
        <>
          <Tabs
            label={text.parts}
            tabs={[
              {
                id: 'overview',
                label: text.overview,
                content: () => <Overview of={environment} base={base} project={project} />,
              },
              {
                id: 'files',
                label: text.files,
                content: () => <FilesPart project={project} id={id} connected={connected} />,
              },
              // The terminal is rendered below the tabs and stays open while another tab is shown.
              { id: 'terminal', label: text.terminal, content: () => null },
              {
                id: 'logs',
                label: text.logs,
                content: () => <LogsPart project={project} id={id} />,
              },
            ]}
          />
          <TerminalPart project={project} id={id} hidden={!onTerminal} />
        </>
      )}
      {open === 'destroy' && (
        <Confirm
          title={text.destroyTitle}
          action={text.destroy}
          danger
          onConfirm={destroy}
          onClose={close}
        >
          <p class="user-text">{text.destroyHint(name)}</p>
        </Confirm>
      )}
      {open === 'take' && <TakeDialog project={project} id={id} onClose={close} />}
      {open === 'release' && <ReleaseDialog project={project} id={id} onClose={close} />}
      {open === 'edit' && (
        <EditDialog project={project} environment={environment} onClose={close} />
      )}
    </Page>
  )
}
