// Owns: the Rust implementations of Arrow's decoders (arrow-json, arrow-avro) for benchmarks/decode.py.
// Threads: one. Never: measures reading the file; prints anything but the seconds of CPU time that decoding took.
//
//     arrow-decoders json|avro SCHEMA ROWS BATCH
//
// SCHEMA: for json a file of [name, type] pairs, for avro a file with the schema's text, which is that of id 7.
// ROWS: a file of rows, each after its length (four bytes, the lowest first).
use std::hint::black_box;
use std::sync::Arc;
use std::{env, fs};

use arrow_avro::reader::ReaderBuilder as AvroBuilder;
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use arrow_json::ReaderBuilder as JsonBuilder;
use arrow_schema::{DataType, Field, Fields, Schema};
use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn rows(data: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let size = u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
        out.push(&data[at + 4..at + 4 + size]);
        at += 4 + size;
    }
    out
}

fn data_type(described: &Value) -> DataType {
    match described {
        Value::String(name) => match name.as_str() {
            "bool" => DataType::Boolean,
            "int32" => DataType::Int32,
            "int64" => DataType::Int64,
            "float64" => DataType::Float64,
            "string" => DataType::Utf8,
            _ => panic!("unknown type {name}"),
        },
        Value::Array(item) => DataType::new_list(data_type(&item[0]), true),
        Value::Object(fields) => DataType::Struct(
            fields.iter().map(|(name, inner)| Field::new(name, data_type(inner), true)).collect(),
        ),
        _ => panic!("unknown type {described}"),
    }
}

fn json(schema: &str, rows: &[&[u8]], batch: usize) -> Result<f64, Failure> {
    let described: Vec<(String, Value)> = serde_json::from_str(schema)?;
    let fields: Fields =
        described.iter().map(|(name, inner)| Field::new(name, data_type(inner), true)).collect();
    let mut decoder =
        JsonBuilder::new(Arc::new(Schema::new(fields))).with_batch_size(batch).build_decoder()?;
    let before = cpu_seconds();
    for part in rows.chunks(batch) {
        for row in part {
            assert_eq!(decoder.decode(row)?, row.len());
        }
        let made = decoder.flush()?.ok_or("no rows")?;
        assert_eq!(black_box(made).num_rows(), part.len());
    }
    Ok(cpu_seconds() - before)
}

fn avro(schema: &str, rows: &[&[u8]], batch: usize) -> Result<f64, Failure> {
    let id = Fingerprint::Id(7);
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    store.set(id, AvroSchema::new(schema.to_string()))?;
    let mut decoder = AvroBuilder::new()
        .with_batch_size(batch)
        .with_writer_schema_store(store)
        .with_active_fingerprint(id)
        .build_decoder()?;
    let before = cpu_seconds();
    for part in rows.chunks(batch) {
        for row in part {
            assert_eq!(decoder.decode(row)?, row.len());
        }
        let made = decoder.flush()?.ok_or("no rows")?;
        assert_eq!(black_box(made).num_rows(), part.len());
    }
    Ok(cpu_seconds() - before)
}

fn main() -> Result<(), Failure> {
    let given: Vec<String> = env::args().collect();
    let schema = fs::read_to_string(&given[2])?;
    let data = fs::read(&given[3])?;
    let rows = rows(&data);
    let batch: usize = given[4].parse()?;
    let run = if given[1] == "json" { json } else { avro };
    run(&schema, &rows, batch)?;
    println!("{}", run(&schema, &rows, batch)?);
    Ok(())
}
