// The types of the dashboards: those of Grafana's published schema, with the options and the field
// configuration of each type of panel that is used. A string may stand for a member of an enum, as
// in JSON.
import type { Dashboard, DataTransformerConfig, FieldConfig, FieldConfigSource, Panel } from '@grafana/schema';
import type * as Stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as StateTimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as Table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as TimeSeries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

type Plain<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
// The schema leaves these two open: the fields of a query belong to Prometheus, and those of a
// transformation to its id (packages/grafana-prometheus and packages/grafana-data of Grafana).
type Query = { refId: string; expr: string; legendFormat?: string; instant?: boolean; format?: 'time_series' | 'table' };
type Transformation = Omit<DataTransformerConfig, 'id' | 'options'> &
  (
    | { id: 'organize'; options: { excludeByName?: Record<string, boolean>; renameByName?: Record<string, string> } }
    | { id: 'merge'; options: Record<string, never> }
  );
type PanelOf<Type extends string, Options, Custom> = Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets' | 'transformations'> & {
  type: Type;
  targets?: Query[];
  transformations?: Transformation[];
  options?: Partial<Options>;
  fieldConfig?: Omit<FieldConfigSource, 'defaults'> & { defaults: Omit<FieldConfig, 'custom'> & { custom?: Partial<Custom> } };
};
type AnyPanel =
  | PanelOf<'stat', Stat.Options, Record<string, never>>
  | PanelOf<'state-timeline', StateTimeline.Options, StateTimeline.FieldConfig>
  | PanelOf<'table', Table.Options, Table.FieldConfig>
  | PanelOf<'timeseries', TimeSeries.Options, TimeSeries.FieldConfig>;

export type Checked = Plain<Omit<Dashboard, 'panels'> & { panels: AnyPanel[] }>;
