/**
 * Saved views of a list: filters, order and columns under a name. Each page defines what a view
 * stores and how it is applied.
 */
import { useState } from 'preact/hooks'
import { type CallInput, type CallReply, call } from '../api/client.ts'
import { type Query, useQuery } from '../api/query.ts'
import { useRefusal } from '../api/refusal.ts'
import { Button, IconButton } from '../design/button.tsx'
import { Checkbox, TextField } from '../design/field.tsx'
import { Icon } from '../design/icons.tsx'
import { showDone, showError } from '../design/notify.ts'
import { Confirm, Dialog, DialogActions, Menu } from '../design/overlay.tsx'
import { Badge, Empty, Failure } from '../design/states.tsx'
import { designText } from '../design/text.ts'
import { current as currentProject, may } from '../shell/session.ts'
import { viewsText as text } from './text.ts'

/** A saved view of a list. */
export type SavedView = CallReply<'saved_view.list'>['items'][number]
/** The content of a view. */
export type Shown = Pick<CallInput<'saved_view.create'>, 'filter' | 'sort' | 'columns'>

/** A menu of the saved views, with entries to save and manage them. */
export function Views({
  project,
  list,
  of = () => true,
  none,
  current,
  shown,
  onApply,
}: {
  readonly project: string
  readonly list: SavedView['list']
  /** Returns whether a view of the list belongs to the page. By default, all views do. */
  readonly of?: (view: SavedView) => boolean
  /** The label of the list without a view. */
  readonly none: string
  /** Id of the view in the URL; '' if no view is selected. */
  readonly current: string
  readonly shown: Shown
  /**
   * Applies a view or, if `view` is undefined, shows the list without a view. `saved` is true if
   * the view has just been saved from the current list.
   */
  readonly onApply: (view: SavedView | undefined, saved: boolean) => void
}) {
  const views = useQuery('saved_view.list', { project, list, limit: 200 })
  const [dialog, setDialog] = useState<'save' | 'manage'>()
  const items = (views.state.value.data?.items ?? []).filter(of)
  const chosen = items.find(({ id }) => id === current)
  return (
    <>
      <Menu
        label={text.views}
        items={[
          { label: none, icon: 'filter', onSelect: () => onApply(undefined, false) },
          ...items.map((view) => ({
            label: view.shared ? designText.detailed(view.name, text.sharedBadge) : view.name,
            icon: 'star' as const,
            onSelect: () => onApply(view, false),
          })),
          { label: text.save, icon: 'plus', onSelect: () => setDialog('save') },
          { label: text.manage, icon: 'edit', onSelect: () => setDialog('manage') },
        ]}
      >
        <Icon name="star" />
        <span class="clip user-text view-name">{chosen?.name ?? text.views}</span>
        <Icon name="down" />
      </Menu>
      {dialog === 'save' && (
        <SaveDialog
          project={project}
          list={list}
          shown={shown}
          onClose={() => setDialog(undefined)}
          onSaved={(view) => {
            views.reload()
            onApply(view, true)
          }}
        />
      )}
      {dialog === 'manage' && (
        <ManageDialog
          project={project}
          views={views}
          items={items}
          shown={shown}
          onClose={() => setDialog(undefined)}
        />
      )}
    </>
  )
}

function SaveDialog({
  project,
  list,
  shown,
  onClose,
  onSaved,
}: {
  readonly project: string
  readonly list: SavedView['list']
  readonly shown: Shown
  readonly onClose: () => void
  readonly onSaved: (view: SavedView) => void
}) {
  const [name, setName] = useState('')
  const [shared, setShared] = useState(false)
  const { error, attempt, faultOf } = useRefusal()
  const save = async (): Promise<void> => {
    await attempt(async () => {
      const view = await call('saved_view.create', {
        project,
        list,
        name: name.trim(),
        ...shown,
        ...(shared && { shared }),
      })
      showDone(text.saved)
      onSaved(view)
      onClose()
    })
  }
  return (
    <Dialog title={text.save} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <TextField
          label={text.viewName}
          required
          maxLength={128}
          value={name}
          onValue={setName}
          fault={faultOf('name')}
        />
        <Checkbox
          label={text.shared}
          checked={shared}
          disabled={!may('project.edit')}
          onChecked={setShared}
        />
        {!may('project.edit') && <p class="small soft">{text.sharedHint}</p>}
        {error && <Failure error={error} />}
        <DialogActions onClose={onClose} action={text.save} submit disabled={name.trim() === ''} />
      </form>
    </Dialog>
  )
}

function ManageDialog({
  project,
  views,
  items,
  shown,
  onClose,
}: {
  readonly project: string
  readonly views: Query<CallReply<'saved_view.list'>>
  readonly items: readonly SavedView[]
  readonly shown: Shown
  readonly onClose: () => void
}) {
  const { error } = views.state.value
  const [deleting, setDeleting] = useState<SavedView>()
  if (deleting)
    return (
      <Confirm
        title={text.deleteView(deleting.name)}
        action={text.delete}
        danger
        onClose={() => setDeleting(undefined)}
        onConfirm={async () => {
          await call('saved_view.delete', { project, id: deleting.id })
          showDone(text.deleted)
          views.reload()
        }}
      >
        {deleting.shared && <p>{text.deleteShared}</p>}
      </Confirm>
    )
  return (
    <Dialog title={text.manage} onClose={onClose}>
      {error && <Failure error={error} retry={views.reload} />}
      {items.length === 0 && <Empty icon="star" title={text.noViews} />}
      <ul class="stack close">
        {items.map((view) => (
          <ViewLine
            key={view.id}
            project={project}
            view={view}
            shown={shown}
            onChanged={views.reload}
            onDelete={() => setDeleting(view)}
          />
        ))}
      </ul>
    </Dialog>
  )
}

function ViewLine({
  project,
  view,
  shown,
  onChanged,
  onDelete,
}: {
  readonly project: string
  readonly view: SavedView
  readonly shown: Shown
  readonly onChanged: () => void
  readonly onDelete: () => void
}) {
  const [name, setName] = useState<string>()
  const { id, shared, owner_id } = view
  const changes =
    may('project.edit') || (!shared && owner_id === currentProject.value?.principal.id)
  const update = async (change: object): Promise<void> => {
    try {
      await call('saved_view.update', { project, id, ...change })
      showDone(text.saved)
      setName(undefined)
      onChanged()
    } catch (error) {
      showError(error)
    }
  }
  if (name !== undefined)
    return (
      <li>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault()
            void update({ name: name.trim() })
          }}
        >
          <div class="grow">
            <TextField
              label={text.renameView(view.name)}
              unlabelled
              required
              maxLength={128}
              value={name}
              onValue={setName}
            />
          </div>
          <Button submit kind="primary" disabled={name.trim() === ''}>
            {text.rename}
          </Button>
          <IconButton icon="close" label={designText.cancel} onClick={() => setName(undefined)} />
        </form>
      </li>
    )
  return (
    <li class="row">
      <span class="grow user-text">{view.name}</span>
      {shared && <Badge tone="info">{text.sharedBadge}</Badge>}
      {changes && (
        <Menu
          label={text.renameView(view.name)}
          items={[
            { label: text.rename, icon: 'edit', onSelect: () => setName(view.name) },
            { label: text.replace, icon: 'filter', onSelect: () => update(shown) },
            ...(may('project.edit')
              ? [
                  {
                    label: shared ? text.unshare : text.share,
                    icon: 'people' as const,
                    onSelect: () => update({ shared: !shared }),
                  },
                ]
              : []),
            { label: text.delete, icon: 'trash', danger: true, onSelect: onDelete },
          ]}
        />
      )}
    </li>
  )
}
