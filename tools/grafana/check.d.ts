// The types of Grafana's dashboards as they are written in files: enumerations are
// their values, and options of a panel may be left out.
import type * as schema from '@grafana/schema';
import type { Options as Stat } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as TimeSeries, FieldConfig as TimeSeriesField } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

type Plain<T> = T extends string ? `${T}` : T extends boolean | number | null | undefined ? T : T extends (infer E)[] ? Plain<E>[] : { [K in keyof T]?: Plain<T[K]> };

interface Target { refId: string; datasource: schema.DataSourceRef; expr: string; legendFormat: string }
interface Link { title: string; url: string; targetBlank: boolean }

type Fields<Custom> = Omit<Plain<schema.FieldConfig>, 'custom' | 'links'> & { custom?: Plain<Custom>; links?: Link[] };
type PanelOf<Type extends string, Options, Custom> = Omit<Plain<schema.Panel>, 'type' | 'options' | 'fieldConfig' | 'targets'> & {
  id: number; type: Type; title: string; gridPos: schema.GridPos; options: Plain<Options>; targets: Target[];
  fieldConfig: { defaults: Fields<Custom>; overrides: [] };
};

export type Dashboard = Omit<Plain<schema.Dashboard>, 'panels' | 'templating'> & {
  uid: string; title: string; schemaVersion: number;
  templating: { list: (Omit<Plain<schema.VariableModel>, 'query'> & { name: string; type: string; query: string | { query: string; refId: string } })[] };
  panels: (PanelOf<'stat', Stat, {}> | PanelOf<'timeseries', TimeSeries, TimeSeriesField>)[];
};
