/** The page of a workflow: its definition, runs, versions and settings. */
import { useState } from 'preact/hooks'
import type { Workflow } from '../../../protocol/workflows/rows.ts'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Show } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { designText } from '../../design/text.ts'
import { Time } from '../../design/time.tsx'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { checkWorkflow, workflowSchema } from '../build/checks.ts'
import { DefinitionEditor } from '../build/definition.tsx'
import { RunTable } from '../build/run-table.tsx'
import { buildText } from '../build/text.ts'
import { Warnings } from '../build/warnings.tsx'
import { Settings } from './settings.tsx'
import { StartDialog } from './start.tsx'
import { workflowsText as text } from './text.ts'
import { Versions } from './versions.tsx'

function Facts({ workflow }: { readonly workflow: Workflow }) {
  const { id, handle, latest_version, published_as_tool, updated_at, description } = workflow
  return (
    <div class="stack close">
      <div class="row small soft">
        <span class="mono user-text">{handle}</span>
        <Badge>{text.versionOf(latest_version)}</Badge>
        {published_as_tool && <Badge tone="accent">{text.tool}</Badge>}
        <Time at={updated_at} relative />
        <CopyButton value={id} label={designText.copyId} />
      </div>
      {description && <p class="user-text">{description}</p>}
    </div>
  )
}

function Definition({
  project,
  workflow,
}: {
  readonly project: string
  readonly workflow: Workflow
}) {
  const { id, spec, latest_version } = workflow
  return (
    <DefinitionEditor
      draftKey={`workflow.${id}`}
      saved={spec}
      version={String(latest_version)}
      newer={buildText.newer(latest_version)}
      schema={workflowSchema}
      check={checkWorkflow}
      root="spec"
      editable={may('project.edit')}
      onSave={async (value) => {
        const made = await call('workflow.update', {
          project,
          id,
          spec: value as never,
          expected_version: latest_version,
        })
        showDone(buildText.saved(made.latest_version))
        return String(made.latest_version)
      }}
    />
  )
}

export default function WorkflowPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/workflows`
  const { state, reload } = useQuery('workflow.get', { project, id }, { kinds: ['workflow'] })
  const [isRemoving, setRemoving] = useState(false)
  const workflow = state.value.data
  const name = workflow?.name ?? id
  const mayStart = may('runs.operate')
  const start = (): void => setQuery({ start: '1' }, { push: true })
  useCommands(
    mayStart
      ? [{ id: 'workflow.start', label: text.start, icon: 'start', keys: 's', run: start }]
      : [],
    [mayStart],
  )
  const actions = workflow && (
    <>
      {may('project.edit') && (
        <Menu
          label={designText.moreActions}
          items={[
            { label: text.remove, icon: 'trash', danger: true, onSelect: () => setRemoving(true) },
          ]}
        />
      )}
      {mayStart && (
        <Button icon="start" kind="primary" shortcut="s" onClick={start}>
          {text.start}
        </Button>
      )}
    </>
  )
  return (
    <Page wide title={name} crumbs={[{ label: text.title, href: base }]} actions={actions}>
      <Show of={state.value} retry={reload} lines={10}>
        {(known) => (
          <>
            <Facts workflow={known} />
            <Warnings {...(known.warnings && { warnings: known.warnings })} />
            <Tabs
              label={text.tabs}
              tabs={[
                {
                  id: 'definition',
                  label: text.definition,
                  content: () => <Definition project={project} workflow={known} />,
                },
                {
                  id: 'runs',
                  label: text.runs,
                  content: () => (
                    <RunTable project={project} filter={{ definition_id: known.id }} />
                  ),
                },
                {
                  id: 'versions',
                  label: text.versions,
                  content: () => <Versions project={project} workflow={known} />,
                },
                {
                  id: 'settings',
                  label: text.settings,
                  content: () => (
                    <Settings key={known.id} project={project} workflow={known} onSaved={reload} />
                  ),
                },
              ]}
            />
            {mayStart && currentUrl.value.query.get('start') === '1' && (
              <StartDialog
                project={project}
                workflow={known}
                onClose={() => setQuery({ start: '' })}
              />
            )}
            {isRemoving && (
              <Confirm
                title={text.removeTitle(known.name)}
                action={buildText.delete}
                danger
                onClose={() => setRemoving(false)}
                onConfirm={async () => {
                  await call('workflow.delete', { project, id: known.id })
                  showDone(buildText.deleted)
                  go(base, { replace: true })
                }}
              >
                <p>{text.removeHint}</p>
                <p>{text.removeRuns}</p>
                <p>{text.removeUse}</p>
              </Confirm>
            )}
          </>
        )}
      </Show>
    </Page>
  )
}
